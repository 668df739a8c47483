"""The calls of Windows that share an engine, made to functions of the documented signatures."""

from __future__ import annotations

import ast
import asyncio
import ctypes
import inspect
from asyncio import proactor_events
from collections.abc import Callable, Iterator
from ctypes import POINTER, c_int, c_void_p
from ctypes.wintypes import BOOL, DWORD, HANDLE, LPCWSTR, LPWSTR, ULONG
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.windows_stand_in import ACCESS_DENIED, SID, PipeHandle, loaded

OTHER = "S-1-5-21-1-2-3-1002"
ADMINISTRATORS = "S-1-5-32-544"
ME = 2**64 - 1
"""The handle of the process that asks."""
PIPE = 77


class Attributes(ctypes.Structure):
    """SECURITY_ATTRIBUTES."""

    _fields_ = (("length", DWORD), ("descriptor", c_void_p), ("inherit", BOOL))


class System:
    """What the calls find, and what they leave behind."""

    def __init__(self) -> None:
        self.users: dict[int, str] = {ME: SID}
        """By process: handles of others are their process ids."""
        self.owners: dict[int, str] = {ME: SID}
        self.client = self.server = 4321
        self.pipe_owner = SID
        self.fails: dict[str, int] = {}
        self.error = 0
        self.made: list[tuple[Any, ...]] = []
        self.open: list[int] = []
        self.allocated: list[int] = []
        self.wrong: list[BaseException] = []
        self._kept: dict[int, Any] = {}
        self._tokens: dict[int, int] = {}
        self._functions: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """A function by its name, with the signature that Microsoft's reference gives."""
        result, *arguments = SIGNATURES[name]
        act: Callable[..., Any] = getattr(self, name)

        def called(*given: Any) -> Any:
            try:
                if name in self.fails:
                    self.error = self.fails[name]
                    return FAILED.get(name, 0)
                return act(*given)
            except BaseException as wrong:
                self.wrong.append(wrong)
                return 0

        return self._functions.setdefault(name, ctypes.CFUNCTYPE(result, *arguments)(called))

    def kept(self, thing: Any, *, allocated: bool = False) -> int:
        address = ctypes.addressof(thing)
        self._kept[address] = thing
        if allocated:
            self.allocated.append(address)
        return address

    def sid(self, text: str) -> int:
        return self.kept(ctypes.create_string_buffer(text.encode()))

    def GetCurrentProcess(self) -> int:
        return ME

    def OpenProcess(self, access: int, inherit: int, pid: int) -> int:
        assert (access, inherit) == (0x1000, 0)
        self.open.append(pid)
        return pid

    def OpenProcessToken(self, process: int, access: int, found: Any) -> int:
        assert access == 8
        found[0] = 1000 + len(self._tokens)
        self._tokens[found[0]] = process
        self.open.append(found[0])
        return 1

    def GetTokenInformation(self, token: int, what: int, to: int, size: int, needed: Any) -> int:
        assert size >= 16 + 68
        needed[0] = 44
        sid = {1: self.users, 4: self.owners}[what][self._tokens[token]]
        c_void_p.from_address(to).value = self.sid(sid)
        return 1

    def ConvertSidToStringSidW(self, sid: int, text: Any) -> int:
        made = ctypes.create_unicode_buffer(self._kept[sid].value.decode())
        ctypes.cast(text, POINTER(c_void_p))[0] = self.kept(made, allocated=True)
        return 1

    def ConvertStringSecurityDescriptorToSecurityDescriptorW(
        self, text: str, revision: int, found: Any, size: Any
    ) -> int:
        assert revision == 1
        assert not size
        made = ctypes.create_string_buffer(text.encode())
        found[0] = self.kept(made, allocated=True)
        return 1

    def CreateNamedPipeW(self, name: str, *given: Any) -> int:
        *numbers, attributes = given
        found = attributes.contents
        assert found.length == ctypes.sizeof(Attributes)
        assert not found.inherit
        assert found.descriptor in self.allocated
        self.made.append((name, *numbers, self._kept[found.descriptor].value.decode()))
        return PIPE

    def GetNamedPipeClientProcessId(self, pipe: int, pid: Any) -> int:
        assert pipe == PIPE
        pid[0] = self.client
        return 1

    def GetNamedPipeServerProcessId(self, pipe: int, pid: Any) -> int:
        assert pipe == PIPE
        pid[0] = self.server
        return 1

    def GetSecurityInfo(self, pipe: int, kind: int, what: int, owner: Any, *rest: Any) -> int:
        assert (pipe, kind, what) == (PIPE, 6, 1)
        group, access, audit, found = rest
        assert [bool(more) for more in (group, access, audit)] == [False] * 3
        owner[0] = self.sid(self.pipe_owner)
        found[0] = self.kept(ctypes.create_string_buffer(8), allocated=True)
        return 0

    def LocalFree(self, address: int) -> None:
        self.allocated.remove(address)

    def CloseHandle(self, handle: int) -> int:
        self.open.remove(handle)
        return 1


SIGNATURES: dict[str, tuple[Any, ...]] = {
    "CloseHandle": (BOOL, HANDLE),
    "LocalFree": (c_void_p, c_void_p),
    "GetCurrentProcess": (HANDLE,),
    "OpenProcess": (HANDLE, DWORD, BOOL, DWORD),
    "CreateNamedPipeW": (
        *(HANDLE, LPCWSTR, DWORD, DWORD, DWORD, DWORD, DWORD, DWORD),
        POINTER(Attributes),
    ),
    "GetNamedPipeClientProcessId": (BOOL, HANDLE, POINTER(ULONG)),
    "GetNamedPipeServerProcessId": (BOOL, HANDLE, POINTER(ULONG)),
    "OpenProcessToken": (BOOL, HANDLE, DWORD, POINTER(HANDLE)),
    "GetTokenInformation": (BOOL, HANDLE, c_int, c_void_p, DWORD, POINTER(DWORD)),
    "ConvertSidToStringSidW": (BOOL, c_void_p, POINTER(LPWSTR)),
    "ConvertStringSecurityDescriptorToSecurityDescriptorW": (
        *(BOOL, LPCWSTR, DWORD),
        *(POINTER(c_void_p), POINTER(ULONG)),
    ),
    "GetSecurityInfo": (
        *(DWORD, HANDLE, c_int, DWORD, POINTER(c_void_p)),
        *(POINTER(c_void_p), POINTER(c_void_p), POINTER(c_void_p), POINTER(c_void_p)),
    ),
}
FAILED = {"CreateNamedPipeW": ME, "GetSecurityInfo": ACCESS_DENIED}
"""What a function returns when it fails, where that is not 0."""


@pytest.fixture
def system() -> System:
    return System()


@pytest.fixture
def win32(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module over that system; afterwards nothing is left open or allocated."""
    libraries: list[tuple[str, bool]] = []

    def library(name: str, use_last_error: bool) -> System:
        libraries.append((name, use_last_error))
        return system

    monkeypatch.setattr(ctypes, "WinDLL", library, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: system.error, raising=False)
    yield loaded(monkeypatch, "win32")
    assert libraries == [("kernel32", True), ("advapi32", True)]
    assert (system.wrong, system.open, system.allocated) == ([], [], [])


def transport() -> Any:
    return SimpleNamespace(get_extra_info={"pipe": PipeHandle(PIPE)}.get)


def test_the_user_is_told_by_a_security_identifier(win32: ModuleType) -> None:
    assert win32.user_sid() == SID


@pytest.mark.parametrize(("first", "access"), [(True, 0x40080003), (False, 0x40000003)])
def test_a_pipe_is_of_bytes_of_this_machine_and_with_the_descriptor_that_is_asked_for(
    win32: ModuleType, system: System, first: bool, access: int
) -> None:
    pipe = win32.make_pipe("name", "D:P(A;;GA;;;me)", first=first)
    assert pipe.handle == PIPE
    reject_remote_clients, unlimited = 8, 255
    assert system.made == [
        ("name", access, reject_remote_clients, unlimited, 8192, 8192, 0, "D:P(A;;GA;;;me)")
    ]


@pytest.mark.parametrize(
    "name",
    [
        "CreateNamedPipeW",
        "ConvertStringSecurityDescriptorToSecurityDescriptorW",
    ],
)
def test_a_pipe_that_cannot_be_made_is_an_error_with_the_number_of_windows(
    win32: ModuleType, system: System, name: str
) -> None:
    system.fails[name] = ACCESS_DENIED
    with pytest.raises(PermissionError) as caught:
        win32.make_pipe("name", "D:", first=True)
    assert caught.value.winerror == ACCESS_DENIED


@pytest.mark.parametrize(
    "name", ["OpenProcessToken", "GetTokenInformation", "ConvertSidToStringSidW"]
)
def test_a_user_whom_windows_does_not_tell_is_an_error(
    win32: ModuleType, system: System, name: str
) -> None:
    system.fails[name] = 1
    with pytest.raises(OSError, match="error 1"):
        win32.user_sid()


def test_a_client_is_mine_when_its_process_runs_as_this_user(
    win32: ModuleType, system: System
) -> None:
    system.users[system.client] = SID
    assert win32.is_client_mine(transport())
    system.users[system.client] = OTHER
    assert not win32.is_client_mine(transport())


@pytest.mark.parametrize(
    ("user", "owner", "owns", "mine"),
    [
        (SID, SID, SID, True),
        (SID, ADMINISTRATORS, ADMINISTRATORS, True),
        (OTHER, SID, SID, False),
        (SID, OTHER, SID, False),
        (SID, ADMINISTRATORS, SID, False),
        (OTHER, ADMINISTRATORS, ADMINISTRATORS, False),
    ],
    ids=[
        "my process, my pipe",
        "all of it with raised rights",
        "another's process behind my pipe",
        "a process with the number of another's",
        "mine with raised rights, and I am without",
        "another administrator's",
    ],
)
def test_a_server_is_mine_when_its_process_and_the_pipe_are(
    win32: ModuleType, system: System, user: str, owner: str, owns: str, mine: bool
) -> None:
    system.users[system.server], system.pipe_owner, system.owners[ME] = user, owner, owns
    assert win32.is_server_mine(transport()) is mine


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (asked, name)
        for asked in ("client", "server")
        for name in (
            f"GetNamedPipe{asked.title()}ProcessId",
            *("OpenProcess", "OpenProcessToken", "GetTokenInformation", "ConvertSidToStringSidW"),
        )
    ]
    + [("server", "GetSecurityInfo")],
)
def test_whom_windows_does_not_tell_is_another(
    win32: ModuleType, system: System, asked: str, name: str
) -> None:
    system.users[system.client] = SID
    system.fails[name] = ACCESS_DENIED
    assert not getattr(win32, f"is_{asked}_mine")(transport())


@pytest.mark.parametrize("asked", ["client", "server"])
def test_whoever_has_hung_up_already_is_another(win32: ModuleType, asked: str) -> None:
    gone = transport()
    gone.get_extra_info("pipe").close()
    assert not getattr(win32, f"is_{asked}_mine")(gone)


class Loop:
    """What is used of asyncio's ProactorEventLoop."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self._proactor = self

    async def accept_pipe(self, pipe: Any) -> None:
        self.said.append(("accept", pipe))

    def _make_duplex_pipe_transport(self, sock: Any, protocol: Any) -> None:
        self.said.append(("attach", sock, protocol))

    async def create_pipe_connection(self, protocol_factory: Any, address: str) -> Any:
        self.said.append(("connect", protocol_factory(), address))
        return "transport", protocol_factory()


def test_pipes_go_through_the_steps_of_asyncio(
    win32: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop()
    pipe, protocol = PipeHandle(PIPE), asyncio.Protocol()
    monkeypatch.setattr(win32, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))

    async def steps() -> object:
        await win32.accept(pipe)
        win32.attach(pipe, protocol)
        return await win32.connect("name", protocol)

    assert asyncio.run(steps()) == "transport"
    assert loop.said == [
        ("accept", pipe),
        ("attach", pipe, protocol),
        ("connect", protocol, "name"),
    ]


def test_this_pythons_asyncio_has_these_steps() -> None:
    make = proactor_events.BaseProactorEventLoop._make_duplex_pipe_transport
    inspect.signature(make).bind("self", "pipe", "protocol")
    # The module itself cannot be imported here.
    source = Path(proactor_events.__file__).with_name("windows_events.py").read_text("utf-8")
    steps = {
        (holder.name, step.name): [argument.arg for argument in step.args.args]
        for holder in ast.parse(source).body
        if isinstance(holder, ast.ClassDef)
        for step in holder.body
        if isinstance(step, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert steps["IocpProactor", "accept_pipe"] == ["self", "pipe"]
    assert steps["ProactorEventLoop", "create_pipe_connection"] == [
        *("self", "protocol_factory", "address")
    ]
