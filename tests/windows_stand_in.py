"""Windows as far as the daemon's two modules for it need one, so that they run here."""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import os
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import dg_engine.daemon
import pytest

SID = "S-1-5-21-1-2-3-1001"
ACCESS_DENIED = 5


def win_error(code: int) -> OSError:
    """What ctypes.WinError makes of a code."""
    kinds = {2: FileNotFoundError, ACCESS_DENIED: PermissionError, 109: BrokenPipeError}
    error = kinds.get(code, OSError)(code, f"error {code}")
    error.winerror = code  # type: ignore[attr-defined]
    return error


class PipeHandle:
    """As asyncio.windows_utils has it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.closed = False

    def fileno(self) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed pipe")
        return self.handle

    def close(self) -> None:
        self.closed = True


def loaded(patch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """A module of dg_engine.daemon as it is on Windows, until `patch` is undone."""
    path = Path(dg_engine.daemon.__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"dg_engine.daemon.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    utils: Any = ModuleType("asyncio.windows_utils")
    utils.BUFSIZE, utils.PipeHandle = 8192, PipeHandle
    patch.setitem(sys.modules, utils.__name__, utils)
    patch.setattr(ctypes, "WinError", win_error, raising=False)
    with pytest.MonkeyPatch.context() as during:
        during.setattr(sys, "platform", "win32")
        spec.loader.exec_module(module)
    patch.setitem(sys.modules, spec.name, module)
    return module


class Pipe:
    """One instance of a named pipe, at its server's end."""

    def __init__(self, name: str, security: str) -> None:
        self.name = name
        self.security = security
        self.peer: socket.socket | None = None
        self.transport: asyncio.BaseTransport | None = None
        self.opened = asyncio.Event()
        self.closed = False

    @property
    def exists(self) -> bool:
        """Whether it keeps the name taken."""
        return not (self.closed or (self.transport is not None and self.transport.is_closing()))

    def close(self) -> None:
        self.closed = True
        if self.peer is not None:
            self.peer.close()


class Pipes:
    """In place of dg_engine.daemon.win32: named pipes within this process."""

    ERROR_ACCESS_DENIED = ACCESS_DENIED
    ERROR_PIPE_BUSY = 231

    def __init__(self) -> None:
        self.all: list[Pipe] = []
        self.client_is_mine = self.server_is_mine = True
        self.failing: list[OSError] = []
        """What the next accepts fail with."""

    def named(self, name: str) -> list[Pipe]:
        return [pipe for pipe in self.all if pipe.name == name and pipe.exists]

    def user_sid(self) -> str:
        return SID

    def make_pipe(self, name: str, security: str, *, first: bool) -> Pipe:
        if first and self.named(name):
            raise win_error(ACCESS_DENIED)
        pipe = Pipe(name, security)
        self.all.append(pipe)
        return pipe

    async def accept(self, pipe: Pipe) -> None:
        if self.failing:
            raise self.failing.pop()
        await pipe.opened.wait()

    def attach(self, pipe: Pipe, protocol: asyncio.BaseProtocol) -> None:
        assert pipe.peer is not None
        loop = asyncio.get_running_loop()
        accepting = loop.create_task(loop.connect_accepted_socket(lambda: protocol, pipe.peer))
        accepting.add_done_callback(lambda done: setattr(pipe, "transport", done.result()[0]))

    async def connect(self, name: str, protocol: asyncio.BaseProtocol) -> asyncio.BaseTransport:
        while not (free := [pipe for pipe in self.named(name) if pipe.peer is None]):
            if not self.named(name):
                raise win_error(2)
            await asyncio.sleep(0.01)  # as asyncio waits for a pipe that is not taken
        ours, free[0].peer = socket.socketpair()
        free[0].opened.set()
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: protocol, sock=ours
        )
        return transport

    def is_client_mine(self, transport: asyncio.BaseTransport) -> bool:
        return self.client_is_mine

    def is_server_mine(self, transport: asyncio.BaseTransport) -> bool:
        return self.server_is_mine


class Running:
    """A daemon within this process, in place of the process that holds one."""

    def __init__(self, daemon: Any) -> None:
        self.pid = os.getpid()
        self.returncode: int | None = None
        self._task: asyncio.Task[None] | None = None
        if daemon.open():
            self._task = asyncio.create_task(daemon.run())
        else:
            self.returncode = 0

    def poll(self) -> int | None:
        if self._task is not None and self._task.done():
            self._task.result()
            self.returncode = 0
        return self.returncode
