"""A `vllm serve` with our plugin somewhere else, behind the engine contract.

The server holds the weights; here lie the checkpoint's configuration and tokenizer. Jobs travel as
`vllm_xargs` of a completion, drafts come back as token ids of its stream.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec

from dg_engine.canvas_backend import Limits
from dg_engine.canvas_engine import CanvasEngine
from dg_engine.choice import is_near
from dg_engine.engine import EngineDown, EngineError
from dg_engine.job import EngineInfo
from dg_engine.model_config import read_config
from dg_engine.tokenizer import Tokenizer
from dg_engine.vllm_plugin.drafts import Code, Draft, unpack_drafts
from dg_engine.vllm_plugin.request import CanvasRequest
from dg_engine.vllm_plugin.vocabulary import VocabularySets

KEY_VARIABLE = "DG_LSP_REMOTE_KEY"
"""Environment variable with the server's key, where no file holds it."""
BUSY = frozenset({429, 502, 503, 504})
"""Answers of a server that may take the request later."""
CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 120.0
"""Between two pieces of an answer, the wait for a place included."""


class RemoteOptions(NamedTuple):
    """How a server is spoken to."""

    key_file: Path | None = None
    canvas_length: int | None = None
    """What the server was started with, where that is below the checkpoint's."""
    pauses: tuple[float, ...] = (0.2, 1.0, 3.0)
    """Seconds before each further attempt to reach the server."""
    transport: httpx.AsyncBaseTransport | None = None
    """What carries the requests, in place of connections."""


class _Choice(msgspec.Struct):
    token_ids: list[int] | None = None


class _Failure(msgspec.Struct):
    message: str = ""


class _Piece(msgspec.Struct):
    choices: list[_Choice] = []
    error: _Failure | None = None


class _Served(msgspec.Struct):
    id: str
    max_model_len: int


class _ServedList(msgspec.Struct):
    data: list[_Served]


class RemoteBackend:
    """CanvasBackend over HTTP."""

    def __init__(
        self, client: httpx.AsyncClient, served: _Served, canvas_length: int, options: RemoteOptions
    ) -> None:
        self._client = client
        self._served = served
        self._canvas_length = canvas_length
        self._options = options

    async def run(
        self, prompt: list[int], request: CanvasRequest, *, name: str, priority: int
    ) -> AsyncIterator[Draft]:
        """See CanvasBackend; a server that is down or busy is tried again until a draft came."""
        room = self._served.max_model_len - len(prompt)
        body = {
            "model": self._served.id,
            "prompt": prompt,
            "max_tokens": min(request.most_tokens(self._canvas_length), room),
            "temperature": 1.0,
            "ignore_eos": True,
            "stream": True,
            "return_token_ids": True,
            "priority": priority,
            "vllm_xargs": request.to_args(),
        }
        begun = False
        for pause in (*self._options.pauses, None):
            try:
                async with self._client.stream(
                    "POST", "v1/completions", json=body, headers={"X-Request-Id": name}
                ) as answer:
                    if answer.status_code not in BUSY:
                        await _check(answer)
                        ended = False
                        async for draft in _drafts(answer):
                            begun, ended = True, draft.code.final
                            yield draft
                        if not ended:
                            raise EngineError(f"{self._where} ended a job without an answer.")
                        return
                    reason = f"HTTP {answer.status_code}"
            except httpx.TransportError as error:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
                if begun:
                    raise EngineError(
                        f"The connection to {self._where} broke ({reason})."
                    ) from error
            if pause is None:
                raise EngineDown(_down(self._where, reason))
            await asyncio.sleep(pause)

    @property
    def _where(self) -> str:
        return str(self._client.base_url)


class RemoteEngine(CanvasEngine):
    """Made by `connect`."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        backend: RemoteBackend,
        limits: Limits,
        sets: VocabularySets,
        info: EngineInfo,
    ) -> None:
        super().__init__(backend, limits, sets)
        self._client = client
        self._info = info

    @classmethod
    async def connect(
        cls, url: str, folder: Path, options: RemoteOptions | None = None
    ) -> RemoteEngine:
        """Reach a server and ask what it serves; `folder` needs no weights.

        Raises EngineError with one sentence when the server is down, refuses the key, or runs
        without the plugin.
        """
        options = options or RemoteOptions()
        config, tokenizer = read_config(folder, any_weights=True), Tokenizer(folder)
        client = _client(url, _key(options), options)
        try:
            served = await _served(client)
            canvas_length = options.canvas_length or config.canvas_length
            info = EngineInfo(
                model=config.name,
                canvas_length=canvas_length,
                vocab_size=config.vocab_size,
                tokenizer_digest=tokenizer.digest,
                device=f"{client.base_url.host}:{client.base_url.port or ''}".rstrip(":"),
                dtype="",
                parameters=config.parameters,
                causal_predicts=False,
            )
            engine = cls(
                client,
                RemoteBackend(client, served, canvas_length, options),
                Limits(canvas_length, config.vocab_size, served.max_model_len),
                VocabularySets.of(config.eos, tokenizer),
                info,
            )
            predicts = await engine.causal_predicts(tokenizer)
        except BaseException:
            await client.aclose()
            raise
        engine._info = msgspec.structs.replace(info, causal_predicts=predicts)
        return engine

    async def info(self) -> EngineInfo:
        """What is served."""
        return self._info

    async def close(self) -> None:
        """End every job with CANCELLED and the connections."""
        await super().close()
        await self._client.aclose()


def _client(url: str, key: str | None, options: RemoteOptions) -> httpx.AsyncClient:
    """A client that checks certificates; proxies are for servers that are not on this machine."""
    near = is_near(url)
    return httpx.AsyncClient(
        base_url=url.rstrip("/") + "/",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
        trust_env=not near,
        transport=options.transport,
    )


def _key(options: RemoteOptions) -> str | None:
    if options.key_file is None:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        return options.key_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise EngineError(
            f"The key file {options.key_file} cannot be read ({error.strerror})."
        ) from error


async def _served(client: httpx.AsyncClient) -> _Served:
    try:
        answer = await client.get("v1/models")
    except httpx.TransportError as error:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise EngineDown(_down(str(client.base_url), reason)) from error
    await _check(answer)
    try:
        return msgspec.json.decode(answer.content, type=_ServedList).data[0]
    except (msgspec.MsgspecError, IndexError) as error:
        raise EngineError(f"{client.base_url} is no vLLM server; correct its address.") from error


async def _check(answer: httpx.Response) -> None:
    """Raise EngineError unless the server took the request."""
    where, status = f"{answer.url.scheme}://{answer.url.netloc.decode()}", answer.status_code
    if status in (401, 403):
        raise EngineError(f"{where} refuses the key; put the right one into {KEY_VARIABLE}.")
    if status != 200:
        await answer.aread()
        said = " ".join(answer.text.split())[:300]
        raise EngineError(f"{where} refused the job (HTTP {status}): {said}")


async def _drafts(answer: httpx.Response) -> AsyncIterator[Draft]:
    """The drafts of an event stream."""
    async for line in answer.aiter_lines():
        data = line.removeprefix("data:").strip()
        if data == line.strip() or data == "[DONE]":
            continue
        piece = msgspec.json.decode(data, type=_Piece)
        if piece.error is not None:
            raise EngineError(f"{answer.url.host} failed on the job: {piece.error.message}")
        for choice in piece.choices:
            try:
                drafts = list(unpack_drafts(choice.token_ids or []))
            except ValueError as error:
                raise EngineError(
                    f"{answer.url.host} runs vLLM without our plugin; install dg-lsp[gpu] there."
                ) from error
            for draft in drafts:
                if draft.code is Code.REFUSED:
                    raise EngineError(
                        f"{answer.url.host} refused the job as malformed; its model or canvas "
                        "length differs from the checkpoint here."
                    )
                yield draft


def _down(where: str, reason: str) -> str:
    return f"{where} does not answer ({reason}); start the server or correct its address."
