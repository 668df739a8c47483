"""What the remote engine makes of servers that are down, busy, closed or not ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from dg_engine.engine import EngineError
from dg_engine.job import DoneKind
from dg_engine.remote_engine import KEY_VARIABLE, RemoteEngine, RemoteOptions
from dg_engine.vllm_plugin.drafts import Code, Draft, pack_draft
from dg_engine.vllm_plugin.request import CanvasRequest, Kind

from tests.engine_fixtures import job, tiny_checkpoint

pytestmark = pytest.mark.asyncio
URL = "http://127.0.0.1:8000"
Handler = Callable[[httpx.Request], httpx.Response]


def drafts_for(request: CanvasRequest) -> list[Draft]:
    """What the plugin would send: a score at once, a canvas in two steps."""
    width = request.width
    last = Draft(2, Code.MAX_STEPS, width, 3, 7, [90] * width, [0.5] * width, [-0.25] * width)
    if request.kind == Kind.SCORE:
        return [Draft(1, Code.CONVERGED, 0, 2, 0, request.canvas, [0.0] * width, [-9.0] * width)]
    return [Draft(1, Code.GOES_ON, 0, 2, 7, [80] * width, [1.0] * width, [-1.0] * width), last]


def events(*pieces: dict[str, Any]) -> httpx.Response:
    lines = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"
    return httpx.Response(200, text=lines, headers={"content-type": "text/event-stream"})


def serve(request: httpx.Request) -> httpx.Response:
    """A server with the plugin."""
    if request.url.path == "/v1/models":
        return httpx.Response(200, json={"data": [{"id": "m", "max_model_len": 160}]})
    asked = CanvasRequest.from_args(json.loads(request.content)["vllm_xargs"])
    assert asked is not None
    return events(*({"choices": [{"token_ids": pack_draft(d)}]} for d in drafts_for(asked)))


async def connect(handler: Handler, url: str = URL, **options: Any) -> RemoteEngine:
    return await RemoteEngine.connect(
        url,
        tiny_checkpoint(),
        RemoteOptions(pauses=(0.0, 0.0), transport=httpx.MockTransport(handler), **options),
    )


async def last_frame(engine: RemoteEngine):
    return [frame async for frame in engine.submit(job())][-1]


async def test_frames_come_out_of_the_stream():
    engine = await connect(serve)
    frames = [frame async for frame in engine.submit(job())]
    assert [f.ids[0][:2] for f in frames] == [[80, 80], [90, 90]]
    assert frames[-1].done.kind is DoneKind.MAX_STEPS
    assert frames[-1].cached_tokens == 7
    assert (await engine.info()).causal_predicts is False
    await engine.close()


async def test_a_busy_server_is_asked_again():
    left = [503, 429]

    def busy(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("completions") and left and len(calls) > 2:
            return httpx.Response(left.pop())
        calls.append(request)
        return serve(request)

    calls: list[httpx.Request] = []
    engine = await connect(busy)
    assert (await last_frame(engine)).done.kind is DoneKind.MAX_STEPS
    assert left == []


async def test_a_server_that_goes_down_ends_the_job_with_one_sentence():
    up = True

    def flaky(request: httpx.Request) -> httpx.Response:
        if not up:
            raise httpx.ConnectError("refused", request=request)
        return serve(request)

    engine = await connect(flaky)
    up = False
    done = (await last_frame(engine)).done
    assert done.kind is DoneKind.ERROR
    assert done.message == (
        "http://127.0.0.1:8000/ does not answer (ConnectError: refused); start the server or "
        "correct its address."
    )


def answering(status: int, path: str = "/v1/models", **answer: Any) -> Handler:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, **answer) if request.url.path == path else serve(request)

    return handler


def without_plugin(request: httpx.Request) -> httpx.Response:
    if request.url.path == "/v1/models":
        return serve(request)
    return events({"choices": [{"token_ids": [17, 4, 9]}]})


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (answering(401), "refuses the key"),
        (answering(200, json={"data": []}), "is no vLLM server"),
        (answering(200, text="<html>"), "is no vLLM server"),
        (answering(400, "/v1/completions", text="too long"), "refused the job .HTTP 400.: too"),
        (answering(503, "/v1/completions"), "does not answer .HTTP 503."),
        (without_plugin, "without our plugin"),
        (
            lambda request: (
                serve(request)
                if "models" in request.url.path
                else events({"error": {"message": "boom"}})
            ),
            "failed on the job: boom",
        ),
    ],
)
async def test_what_cannot_be_used_is_one_sentence(handler: Handler, words: str):
    with pytest.raises(EngineError, match=words) as caught:
        await connect(handler)
    assert "\n" not in str(caught.value)


async def test_the_key_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[str | None] = []

    def watch(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return serve(request)

    await connect(watch)
    monkeypatch.setenv(KEY_VARIABLE, "from the environment")
    await connect(watch)
    (tmp_path / "key").write_text("from a file\n")
    await connect(watch, key_file=tmp_path / "key")
    kinds = dict.fromkeys(seen)
    assert list(kinds) == [None, "Bearer from the environment", "Bearer from a file"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host", "is no address"),
        ("host:8000", "is no address"),
        ("http://[::1", "is no address"),
        ("http://host:port", "is no address"),
        ("http://far.example", "would carry your code and the key unencrypted"),
        ("https://ada:secret@far.example", "must not hold a key"),
    ],
)
async def test_an_address_that_cannot_be_used_is_one_sentence(url: str, words: str):
    with pytest.raises(EngineError, match=words):
        await connect(serve, url)


async def test_a_key_file_that_is_missing_is_one_sentence(tmp_path: Path):
    with pytest.raises(EngineError, match="cannot be read"):
        await connect(serve, key_file=tmp_path / "none")


@pytest.mark.parametrize(
    ("url", "proxied"),
    [
        ("http://127.0.0.1:1", False),
        ("http://[::1]:1", False),
        ("http://localhost:1", False),
        ("https://far.example", True),
    ],
)
async def test_proxies_are_for_servers_that_are_elsewhere(url: str, proxied: bool):
    from dg_engine.remote_engine import _client

    client = _client(url, None, RemoteOptions())
    assert client.trust_env is proxied
    await client.aclose()
