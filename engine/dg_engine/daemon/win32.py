"""The calls of Windows for a named pipe of one user, and asyncio's for pipes of its own.

Never run on Windows. tests/test_win32.py runs the calls by ctypes with functions of the same
signatures in place of the system's, and `accept`, `attach` and `connect` over a stand-in for
asyncio's loop. Signatures are those of Microsoft's reference. A call that fails raises OSError,
unless it says otherwise.

asyncio serves no pipe but one that it makes itself (`ProactorEventLoop.start_serving_pipe`), and of
that one other users may read. So the pipe is made here, and then goes through the two steps that
asyncio takes, which are private: `accept_pipe` and `_make_duplex_pipe_transport`.
"""

from __future__ import annotations

import sys

if sys.platform != "win32":
    raise ImportError("These are calls of Windows.")

import asyncio
import ctypes
from asyncio.windows_utils import BUFSIZE, PipeHandle
from ctypes import POINTER, byref, c_int, c_void_p
from ctypes.wintypes import BOOL, DWORD, HANDLE, LPCWSTR, LPWSTR, ULONG
from typing import Any

ERROR_ACCESS_DENIED = 5
ERROR_PIPE_BUSY = 231

_PIPE_ACCESS_DUPLEX = 0x3
_FILE_FLAG_FIRST_PIPE_INSTANCE = 0x80000
_FILE_FLAG_OVERLAPPED = 0x40000000
_PIPE_REJECT_REMOTE_CLIENTS = 0x8
"""With the bits for bytes in place of messages, and for blocking, which are 0."""
_PIPE_UNLIMITED_INSTANCES = 255
_INVALID_HANDLE = c_void_p(-1).value
_SDDL_REVISION_1 = 1
_PROCESS_QUERY_LIMITED_INFORMATION = 0x1000
_TOKEN_QUERY = 0x8
_TOKEN_USER = 1
_TOKEN_OWNER = 4
_TOKEN_BYTES = 256
"""A TOKEN_USER or TOKEN_OWNER takes at most 16, and its SID 68."""
_SE_KERNEL_OBJECT = 6
_OWNER_SECURITY_INFORMATION = 0x1


class _SecurityAttributes(ctypes.Structure):
    _fields_ = (
        ("nLength", DWORD),
        ("lpSecurityDescriptor", c_void_p),
        ("bInheritHandle", BOOL),
    )


_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_advapi32 = ctypes.WinDLL("advapi32", use_last_error=True)


def _function(dll: ctypes.WinDLL, name: str, result: Any, *arguments: Any) -> Any:
    found = dll[name]
    found.restype, found.argtypes = result, arguments
    return found


_close_handle = _function(_kernel32, "CloseHandle", BOOL, HANDLE)
_local_free = _function(_kernel32, "LocalFree", c_void_p, c_void_p)
_get_current_process = _function(_kernel32, "GetCurrentProcess", HANDLE)
_open_process = _function(_kernel32, "OpenProcess", HANDLE, DWORD, BOOL, DWORD)
_create_named_pipe = _function(
    *(_kernel32, "CreateNamedPipeW", HANDLE),
    *(LPCWSTR, DWORD, DWORD, DWORD, DWORD, DWORD, DWORD, POINTER(_SecurityAttributes)),
)
_get_client_process = _function(
    _kernel32, "GetNamedPipeClientProcessId", BOOL, HANDLE, POINTER(ULONG)
)
_get_server_process = _function(
    _kernel32, "GetNamedPipeServerProcessId", BOOL, HANDLE, POINTER(ULONG)
)
_open_process_token = _function(_advapi32, "OpenProcessToken", BOOL, HANDLE, DWORD, POINTER(HANDLE))
_get_token_information = _function(
    _advapi32, "GetTokenInformation", BOOL, HANDLE, c_int, c_void_p, DWORD, POINTER(DWORD)
)
_sid_to_string = _function(_advapi32, "ConvertSidToStringSidW", BOOL, c_void_p, POINTER(LPWSTR))
_string_to_descriptor = _function(
    *(_advapi32, "ConvertStringSecurityDescriptorToSecurityDescriptorW", BOOL),
    *(LPCWSTR, DWORD, POINTER(c_void_p), POINTER(ULONG)),
)
_get_security_info = _function(
    *(_advapi32, "GetSecurityInfo", DWORD, HANDLE, c_int, DWORD, POINTER(c_void_p)),
    *(POINTER(c_void_p), POINTER(c_void_p), POINTER(c_void_p), POINTER(c_void_p)),
)


def user_sid() -> str:
    """The security identifier of this process's user, such as S-1-5-21-1-2-3-1001."""
    return _sid_of(_get_current_process(), _TOKEN_USER)


def make_pipe(name: str, security: str, *, first: bool) -> PipeHandle:
    """Make a pipe for one connection of this machine, with an SDDL descriptor.

    `first` fails with ERROR_ACCESS_DENIED where the name is taken, whoever has it.
    """
    access = _PIPE_ACCESS_DUPLEX | _FILE_FLAG_OVERLAPPED
    if first:
        access |= _FILE_FLAG_FIRST_PIPE_INSTANCE
    descriptor = c_void_p()
    _check(_string_to_descriptor(security, _SDDL_REVISION_1, byref(descriptor), None))
    try:
        attributes = _SecurityAttributes(ctypes.sizeof(_SecurityAttributes), descriptor, False)
        handle = _create_named_pipe(
            *(name, access, _PIPE_REJECT_REMOTE_CLIENTS, _PIPE_UNLIMITED_INSTANCES),
            *(BUFSIZE, BUFSIZE, 0, byref(attributes)),
        )
        _check(handle != _INVALID_HANDLE)
    finally:
        _local_free(descriptor)
    return PipeHandle(handle)


def is_client_mine(transport: asyncio.BaseTransport) -> bool:
    """Whether the process at the client's end runs as this user; False where nobody can tell."""
    try:
        return _runs_as_me(_get_client_process, _handle(transport))
    except (OSError, ValueError):
        return False


def is_server_mine(transport: asyncio.BaseTransport) -> bool:
    """Whether the pipe and the process that serves it are this user's; False where none can tell.

    Both, since each alone can be another's: a process's number may be given anew, and what any
    administrator makes with raised rights is owned by all of them.
    """
    try:
        handle = _handle(transport)
        return _runs_as_me(_get_server_process, handle) and _owner_of(handle) == _sid_of(
            _get_current_process(), _TOKEN_OWNER
        )
    except (OSError, ValueError):
        return False


async def accept(pipe: PipeHandle) -> None:
    """Wait until a client has opened the pipe; BrokenPipeError when it has gone again."""
    loop: Any = asyncio.get_running_loop()
    await loop._proactor.accept_pipe(pipe)


def attach(pipe: PipeHandle, protocol: asyncio.BaseProtocol) -> None:
    """Have the running loop read and write an accepted pipe."""
    loop: Any = asyncio.get_running_loop()
    loop._make_duplex_pipe_transport(pipe, protocol)


async def connect(name: str, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
    """Open a pipe as a client, which waits while all of that name are taken."""
    loop: Any = asyncio.get_running_loop()
    transport, _ = await loop.create_pipe_connection(lambda: protocol, name)
    return transport


def _handle(transport: asyncio.BaseTransport) -> int:
    """A connection's pipe; ValueError when it is closed already."""
    return transport.get_extra_info("pipe").fileno()


def _runs_as_me(get_process: Any, pipe: int) -> bool:
    pid = ULONG()
    _check(get_process(pipe, byref(pid)))
    process = _open_process(_PROCESS_QUERY_LIMITED_INFORMATION, False, pid)
    _check(process)
    try:
        return _sid_of(process, _TOKEN_USER) == user_sid()
    finally:
        _close_handle(process)


def _sid_of(process: int, what: int) -> str:
    """The user, or the owner of what is made, in a process's token."""
    token = HANDLE()
    _check(_open_process_token(process, _TOKEN_QUERY, byref(token)))
    try:
        found = ctypes.create_string_buffer(_TOKEN_BYTES)
        length = DWORD()
        _check(_get_token_information(token, what, found, _TOKEN_BYTES, byref(length)))
        # Both structures begin with the address of the SID, which lies behind them.
        return _text_of(c_void_p.from_buffer(found))
    finally:
        _close_handle(token)


def _owner_of(pipe: int) -> str:
    owner, descriptor = c_void_p(), c_void_p()
    code = _get_security_info(
        *(pipe, _SE_KERNEL_OBJECT, _OWNER_SECURITY_INFORMATION),
        *(byref(owner), None, None, None, byref(descriptor)),
    )
    if code:  # returned, and not left as the last error
        raise ctypes.WinError(code)
    try:
        return _text_of(owner)
    finally:
        _local_free(descriptor)


def _text_of(sid: c_void_p) -> str:
    text = LPWSTR()
    _check(_sid_to_string(sid, byref(text)))
    try:
        return text.value or ""
    finally:
        _local_free(ctypes.cast(text, c_void_p))


def _check(succeeded: object) -> None:
    if not succeeded:
        raise ctypes.WinError(ctypes.get_last_error())
