"""A server that speaks as `vllm serve` with our plugin does, over a socket and without a model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from dg_engine.vllm_plugin.drafts import Code, Draft, pack_draft

from tests.engine_contract import LONG
from tests.test_remote_engine import serve

KEY = "open sesame"
MAX_TOKENS = 4096


class Handler(BaseHTTPRequestHandler):
    """`serve` of the remote engine's tests over a socket; long jobs go on until nobody listens."""

    server: Served

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            self.send_error(401)
            return
        if self.path == "/v1/models":
            self.send({"data": [{"id": "m", "max_model_len": MAX_TOKENS}]})
            return
        self.server.jobs += 1
        if json.loads(body)["vllm_xargs"]["dg_max_steps"] == LONG["max_steps"]:
            self.long()
            return
        found = serve(httpx.Request("POST", f"http://x{self.path}", content=body))
        self.send(found.content)

    def send(self, content: bytes | dict[str, object]) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def long(self) -> None:
        self.send_response(200)
        self.end_headers()
        draft = Draft(1, Code.GOES_ON, 0, 2, 7, [80] * 16, [1.0] * 16, [-1.0] * 16)
        line = f"data: {json.dumps({'choices': [{'token_ids': pack_draft(draft)}]})}\n\n"
        try:
            while not self.server.closing.wait(0.02):
                self.wfile.write(line.encode())
        except OSError:
            self.server.left.set()

    do_GET = do_POST = answer


class Served(ThreadingHTTPServer):
    """A server in a thread."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.closing = threading.Event()
        self.jobs = 0
        """Requests for a canvas that came."""
        self.left = threading.Event()
        """Set once a client has gone in the middle of a long job."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.closing.set()
    server.shutdown()
    thread.join()
    server.server_close()
