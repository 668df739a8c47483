"""A client that starts a language server and speaks JSON-RPC to it, with a time on each message."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"workspaceEdit": {"documentChanges": True}},
}
LEAVE_SECONDS = 5.0
_END = b"\r\n\r\n"


class Message(msgspec.Struct):
    """Whatever a server sends; absent and null fields are not told apart."""

    id: int | str | None = None
    method: str | None = None
    params: Any = None
    result: Any = None
    error: Any = None


class Answer(msgspec.Struct, frozen=True):
    """A response, and when it arrived by `time.perf_counter`."""

    result: Any
    error_code: int | None
    error: str
    at: float


class Request(msgspec.Struct, frozen=True, eq=False):
    """A request that was sent at a time."""

    id: int
    at: float
    answer: asyncio.Future[Answer]


class ServerEnded(Exception):
    """The server is gone; the message says with which status."""


class Client:
    """One server process and the requests that it has not answered yet."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.on_notification: Callable[[str, Any, float], None] = lambda method, params, at: None
        self.on_request: Callable[[str, Any], Any] = _reply_to
        self.answers: dict[int | str | None, int] = {}
        """How many responses each id has had."""
        self._open: dict[int | str, asyncio.Future[Answer]] = {}
        self._next = 0
        self._ended: ServerEnded | None = None
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def start(cls, command: Sequence[str], *, cwd: str | None = None) -> Client:
        """Start a server that speaks over its standard streams; its log goes where ours goes."""
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, cwd=cwd, stdin=pipe, stdout=pipe))

    async def initialize(self, settings: object, root: str = "file:///project") -> None:
        """The handshake; raises ServerEnded."""
        params = {
            "processId": None,
            "rootUri": root,
            "capabilities": CAPABILITIES,
            "initializationOptions": settings,
        }
        await self.request("initialize", params)
        self.notify("initialized", {})

    def send(self, method: str, params: object) -> Request:
        """Send a request."""
        self._next += 1
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        # Whoever does not wait for the answer need not hear of the server's end.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._open[self._next] = answer
        if self._ended is not None:
            answer.set_exception(self._ended)
        request = Request(self._next, time.perf_counter(), answer)
        self._write({"jsonrpc": "2.0", "id": request.id, "method": method, "params": params})
        return request

    async def request(self, method: str, params: object) -> Answer:
        """Send a request and wait for the answer; raises ServerEnded."""
        return await self.send(method, params).answer

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._write({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel(self, request: Request) -> None:
        """Ask for a request to be given up."""
        self.notify("$/cancelRequest", {"id": request.id})

    def write_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(data)

    async def drain(self) -> None:
        """Wait until the server has read most of what was sent; raises ServerEnded."""
        assert self.process.stdin is not None
        try:
            await self.process.stdin.drain()
        except ConnectionError as error:
            raise ServerEnded(await self._ending()) from error

    async def leave(self) -> int:
        """shutdown, exit; the server's exit status. A server that does not go is killed."""
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self.request("shutdown", None)
                self.notify("exit", None)
                return await self.process.wait()
        except (TimeoutError, ServerEnded):
            return await self.kill()

    async def kill(self) -> int:
        """End the server however it stands; its exit status."""
        if self.process.returncode is None:
            self.process.kill()
        await self._reading
        return await self.process.wait()

    def _write(self, message: object) -> None:
        body = msgspec.json.encode(message)
        self.write_bytes(b"Content-Length: %d%s%s" % (len(body), _END, body))

    async def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        decode = msgspec.json.Decoder(Message).decode
        try:
            while True:
                header = await stream.readuntil(_END)
                length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                message = decode(await stream.readexactly(length))
                self._take(message, time.perf_counter())
        except (asyncio.IncompleteReadError, ConnectionError):
            error = self._ended = ServerEnded(await self._ending())
            for answer in self._open.values():
                if not answer.done():
                    answer.set_exception(error)

    def _take(self, message: Message, at: float) -> None:
        if message.method is not None and message.id is not None:
            result = self.on_request(message.method, message.params)
            self._write({"jsonrpc": "2.0", "id": message.id, "result": result})
        elif message.method is not None:
            self.on_notification(message.method, message.params, at)
        else:
            self.answers[message.id] = self.answers.get(message.id, 0) + 1
            waiting = None if message.id is None else self._open.pop(message.id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(_answer(message, at))

    async def _ending(self) -> str:
        return f"The server ended with status {await self.process.wait()}."


def _answer(message: Message, at: float) -> Answer:
    if not isinstance(message.error, dict):
        return Answer(message.result, None, "", at)
    error = cast("dict[str, Any]", message.error)
    return Answer(None, int(error.get("code", 0)), str(error.get("message", "")), at)


def _reply_to(method: str, params: Any) -> Any:
    """What an editor with few abilities says to a server's request."""
    if method == "workspace/configuration":
        return [None for _ in params["items"]]
    if method == "workspace/applyEdit":
        return {"applied": False}
    return None
