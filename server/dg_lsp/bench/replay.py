"""Recorded sessions against the real server: one server, one session after another."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from dg_lsp.bench.client import Client, ServerEnded
from dg_lsp.bench.player import Pace, Player
from dg_lsp.bench.sessions import Session
from dg_lsp.bench.tally import Tally, markdown, summary, total_of

SERVER = (sys.executable, "-m", "dg_lsp.bench.measured_server")
SESSIONS = Path(__file__).resolve().parents[3] / "bench" / "replay" / "sessions"
"""Where a checkout keeps the recordings; an installed package has none."""
LOADING_SECONDS = 120.0
_POLL_SECONDS = 0.05


class ReplayError(Exception):
    """A replay that could not be made; the message says what to do."""


class Replay(msgspec.Struct, frozen=True):
    """What was counted, by session, and what it was counted with."""

    model: str
    pace: Pace
    tallies: dict[str, Tally]

    @property
    def whole(self) -> Tally:
        """All sessions added up."""
        return total_of(self.tallies.values())

    def as_object(self) -> dict[str, object]:
        """Everything for scripts: the whole, and each session's counts."""
        return {
            "model": self.model,
            "speed": self.pace.speed,
            "patient": self.pace.patient,
            "sessions": len(self.tallies),
            "whole": summary(self.whole),
            "by_session": {name: summary(tally) for name, tally in self.tallies.items()},
        }

    def as_markdown(self) -> str:
        """Everything for people."""
        author = (
            "awaits each answer" if self.pace.patient else f"types at speed {self.pace.speed:g}"
        )
        head = f"{len(self.tallies)} recorded sessions, model {self.model}; the author {author}."
        rows = [
            f"| {name} | {t.keys} | {t.shown} | {t.kept} | {t.saved_keys} | {t.stale} |"
            for name, t in self.tallies.items()
        ]
        table = [
            "| session | keys | shown | kept | keys saved | stale |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
        return "\n".join([head, "", markdown(self.whole), "", *table])


async def replay(
    sessions: Sequence[Session],
    *,
    model: str,
    settings: Mapping[str, object],
    pace: Pace,
    command: Sequence[str] = SERVER,
    after_each: Callable[[str], None] = lambda name: None,
) -> Replay:
    """Play the sessions; raises ReplayError when the server cannot serve or ends.

    The server has an engine of its own unless the settings say otherwise.
    """
    client = await Client.start(command)
    tallies: dict[str, Tally] = {}
    try:
        await client.initialize({"shareEngine": False, **settings})
        await until_ready(client)
        for session in sessions:
            tallies[session.name] = await Player(client, session, pace).play()
            after_each(session.name)
    except ServerEnded as error:
        raise ReplayError(str(error)) from error
    finally:
        await client.leave()
    return Replay(model, pace, tallies)


async def until_ready(client: Client) -> None:
    """Wait for the server's model; raises ReplayError when it cannot be loaded, ServerEnded."""
    try:
        async with asyncio.timeout(LOADING_SECONDS):
            while True:
                answer = await client.request("workspace/executeCommand", {"command": "dg.status"})
                if answer.error_code is not None:
                    raise ReplayError(f"The server tells no status: {answer.error}")
                if answer.result["model"] == "ready":
                    return
                if answer.result["model"] == "failed":
                    raise ReplayError(answer.result["message"])
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise ReplayError("The model was not loaded in two minutes; see the log.") from None
