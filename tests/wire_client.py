"""A client that speaks bare JSON-RPC to a server, so that tests can misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

from dg_lsp.language_server import serve

from tests.scripted_server import scripted_server

ROOT = Path(__file__).parent.parent
DOCUMENT = "file:///project/example.py"
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "window": {"workDoneProgress": True},
}


class WireClient:
    """One server and everything that it has said."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received: list[dict[str, Any]] = []
        self.on_request: Callable[[dict[str, Any]], Any] = lambda message: None
        self._writer = writer
        self._changed = asyncio.Condition()
        self._reading = asyncio.ensure_future(self._read(reader))
        self._next = 0
        self._held: bytearray | None = None
        self._end: Awaitable[int] | None = None
        self._process: asyncio.subprocess.Process | None = None

    @classmethod
    async def beside(cls, folder: Path, **script: Any) -> WireClient:
        """A server with a scripted engine in this process, over a pair of sockets."""
        near, far = socket.socketpair()
        client = cls(*await asyncio.open_connection(sock=near))
        server = scripted_server(folder, script)
        client._end = asyncio.ensure_future(serve(server, far.recv, far.sendall))
        client._end.add_done_callback(lambda _: far.close())
        return client

    @classmethod
    async def start(
        cls, folder: Path, stderr: int = subprocess.DEVNULL, **script: Any
    ) -> WireClient:
        """A server with a scripted engine as a process of its own, over its standard streams."""
        arguments = ("-m", "tests.scripted_server", str(folder), json.dumps(script))
        return await cls.run(*arguments, stderr=stderr)

    @classmethod
    async def run(cls, *arguments: str, stderr: int = subprocess.DEVNULL) -> WireClient:
        """A server started as `python ARGUMENTS`."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        client = cls(process.stdout, process.stdin)
        client._process = process
        client._end = asyncio.ensure_future(process.wait())
        return client

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The server's process, when it is one of its own."""
        assert self._process is not None
        return self._process

    async def initialize(self, **params: Any) -> dict[str, Any]:
        """The handshake; the result of initialize."""
        given = {"processId": None, "rootUri": "file:///project", "capabilities": CAPABILITIES}
        result = await self.request("initialize", {**given, **params})
        self.notify("initialized", {})
        return result["result"]

    def open(self, text: str, uri: str = DOCUMENT, version: int = 1) -> None:
        document = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def insert(self, version: int, line: int, character: int, text: str) -> None:
        place = {"line": line, "character": character}
        self.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": DOCUMENT, "version": version},
                "contentChanges": [{"range": {"start": place, "end": place}, "text": text}],
            },
        )

    def ask_completion(self, line: int, character: int, kind: int = 2, **document: Any) -> int:
        """Send textDocument/inlineCompletion; its id."""
        return self.send(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": DOCUMENT, **document},
                "position": {"line": line, "character": character},
                "context": {"triggerKind": kind},
            },
        )

    async def complete(self, line: int, character: int, kind: int = 2) -> list[dict[str, Any]]:
        """The items of one inline completion."""
        answer = await self.answer(self.ask_completion(line, character, kind))
        return answer["result"]["items"]

    async def command(self, name: str, argument: dict[str, Any] | None = None) -> Any:
        arguments = [] if argument is None else [argument]
        answer = await self.request(
            "workspace/executeCommand", {"command": name, "arguments": arguments}
        )
        return answer["result"]

    async def engine(self) -> dict[str, Any]:
        """What the scripted engine counts."""
        return (await self.request("test/engine", {}))["result"]

    async def request(self, method: str, params: Any) -> dict[str, Any]:
        return await self.answer(self.send(method, params))

    def send(self, method: str, params: Any) -> int:
        self._next += 1
        self.write({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def notify(self, method: str, params: Any) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel(self, message_id: int) -> None:
        self.notify("$/cancelRequest", {"id": message_id})

    def write(self, message: Any) -> None:
        self.write_raw(json.dumps(message).encode())

    def write_raw(self, body: bytes) -> None:
        self.write_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def write_bytes(self, data: bytes) -> None:
        if self._held is not None:
            self._held += data
        else:
            self._writer.write(data)

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        """What is sent inside goes into the pipe as one piece."""
        self._held = bytearray()
        yield
        held, self._held = bytes(self._held), None
        self._writer.write(held)

    def hang_up(self) -> None:
        """Close the server's input."""
        self._writer.close()

    def answers(self, message_id: int) -> list[dict[str, Any]]:
        """Every response to an id so far."""
        return [m for m in self.received if "method" not in m and m.get("id") == message_id]

    async def answer(self, message_id: int) -> dict[str, Any]:
        await self.until(lambda: bool(self.answers(message_id)))
        return self.answers(message_id)[0]

    def said(self, method: str) -> list[Any]:
        """The parameters of every notification or request of a method so far."""
        return [m["params"] for m in self.received if m.get("method") == method]

    async def until_said(self, method: str, count: int = 1) -> list[Any]:
        await self.until(lambda: len(self.said(method)) >= count)
        return self.said(method)

    async def until(self, true: Callable[[], bool], seconds: float = 10) -> None:
        """Wait for messages until something is true of them."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: true() or self._reading.done())
        assert true(), "the server ended first"

    async def ended(self, seconds: float = 2) -> int:
        """The exit status, within 2 s."""
        assert self._end is not None
        async with asyncio.timeout(seconds):
            return await self._end

    async def close(self) -> None:
        """End the server however it stands."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        self.hang_up()
        if self._end is not None and self._process is None:
            await self._end
        await self._reading

    async def _read(self, stream: asyncio.StreamReader) -> None:
        try:
            while True:
                header = await stream.readuntil(b"\r\n\r\n")
                length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                message = json.loads(await stream.readexactly(length))
                if "method" in message and "id" in message:
                    result = self.on_request(message)
                    self.write({"jsonrpc": "2.0", "id": message["id"], "result": result})
                async with self._changed:
                    self.received.append(message)
                    self._changed.notify_all()
        except (asyncio.IncompleteReadError, ConnectionError):
            async with self._changed:
                self._changed.notify_all()
