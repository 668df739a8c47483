"""Every silence has a reason that somebody can ask for, and that the editor is told of."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dg_engine.job import DoneKind
from dg_lsp.results import Completion
from dg_lsp.silences import PAUSED, SUPERSEDED, of_completion, without_engine
from dg_lsp.status import ModelState, ModelStatus, Report, Status, StatusBoard, StatusKind, Why

from tests import server_fixtures
from tests.server_fixtures import CURSOR, TEXT, Clients
from tests.wire_client import DOCUMENT, WireClient

tiny, clients = server_fixtures.tiny, server_fixtures.clients
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


async def report(client: WireClient) -> dict[str, Any]:
    return (await client.request("dg/status", None))["result"]


async def reason(client: WireClient) -> tuple[str, str]:
    last = (await report(client))["lastReason"]
    return last["why"], last["message"]


async def ready(client: WireClient, **options: Any) -> WireClient:
    await client.initialize(initializationOptions=options)
    client.open(TEXT)
    return client


@pytest.mark.asyncio
async def test_a_suggestion_has_a_latency_and_no_reason(clients: Clients) -> None:
    client = await clients.ready("a + b")
    assert len(await client.complete(*CURSOR)) == 1
    found = await report(client)
    assert found["lastReason"] is None
    assert found["lastLatencyMs"] > 0
    assert (found["state"], found["model"], found["kind"]) == ("ready", "scripted", "Normal")


@pytest.mark.asyncio
async def test_a_model_that_loads_is_named_and_the_reason(clients: Clients) -> None:
    client = await ready(await clients.start(load="later"), automaticDeadlineMs=50, model="mine")
    assert await client.complete(*CURSOR) == []
    found = await report(client)
    assert (found["state"], found["model"], found["busy"]) == ("loading", "mine", True)
    assert found["lastReason"]["why"] == "loading"


@pytest.mark.asyncio
async def test_a_model_that_failed_is_an_engine_that_is_down(clients: Clients) -> None:
    client = await clients.ready(load="No model named 'x' here; put its folder there.")
    assert await client.complete(*CURSOR) == []
    sentence = "No model named 'x' here; put its folder there."
    assert await reason(client) == ("engine_down", sentence)
    assert (await report(client))["state"] == "failed"
    told = len(client.said("didChangeStatus"))
    assert await client.complete(*CURSOR) == []
    await report(client)
    assert len(client.said("didChangeStatus")) == told  # nothing flickers where nothing works


@pytest.mark.asyncio
async def test_an_excluded_file_is_told_with_its_rule(clients: Clients) -> None:
    client = await ready(await clients.start("a + b"), exclude=["example.py"])
    assert await client.complete(*CURSOR) == []
    assert await reason(client) == (
        "excluded",
        "`example.py` is excluded by `example.py` in the setting exclude.",
    )


@pytest.mark.asyncio
async def test_suggestions_that_are_switched_off_come_when_they_are_asked_for(
    clients: Clients,
) -> None:
    client = await ready(await clients.start("a + b"), enabled=False)
    assert await client.complete(*CURSOR) == []
    assert await reason(client) == ("paused", PAUSED.message)
    assert (await report(client))["kind"] == "Inactive"
    assert len(await client.complete(*CURSOR, kind=1)) == 1
    assert (await report(client))["lastReason"] is None


@pytest.mark.asyncio
async def test_an_engine_that_is_too_slow_is_told_with_its_stage(clients: Clients) -> None:
    client = await ready(await clients.start("!wait"), automaticDeadlineMs=50)
    assert await client.complete(*CURSOR) == []
    last = (await report(client))["lastReason"]
    assert (last["why"], last["stage"]) == ("too_slow", "engine")
    assert last["message"].startswith("Nothing was ready within 50 ms; 50 ms went into ")
    assert last["message"].endswith(" ms went into waiting for the engine's first draft.")


@pytest.mark.asyncio
async def test_an_engine_that_fails_is_quoted(clients: Clients) -> None:
    client = await clients.ready("!error")
    assert await client.complete(*CURSOR) == []
    assert await reason(client) == ("engine_down", "The script says so.")


@pytest.mark.asyncio
async def test_a_model_that_proposes_nothing_is_no_fault(clients: Clients) -> None:
    client = await clients.ready("")
    assert await client.complete(*CURSOR) == []
    why, message = await reason(client)
    assert why == "no_suggestion"
    assert message
    assert (await report(client))["kind"] == "Normal"


@pytest.mark.asyncio
@pytest.mark.parametrize(("wanted", "kind", "count"), [(0.95, 2, 0), (0.95, 1, 1), (0.9, 2, 1)])
async def test_a_model_that_is_not_sure_enough_is_silent_unless_it_is_asked(
    clients: Clients, wanted: float, kind: int, count: int
) -> None:
    client = await ready(await clients.start("a + b"), minConfidence=wanted)
    assert len(await client.complete(*CURSOR, kind=kind)) == count
    last = (await report(client))["lastReason"]
    assert (last is None) == (count == 1)
    assert count or last["why"] == "unsure"


@pytest.mark.asyncio
async def test_a_document_that_is_not_open_is_told(clients: Clients) -> None:
    client = await clients.start("a + b")
    await client.initialize()
    assert await client.complete(*CURSOR) == []
    assert (await reason(client))[0] == "not_open"


@pytest.mark.asyncio
async def test_a_request_for_another_version_is_overtaken(clients: Clients) -> None:
    client = await clients.ready("a + b")
    asked = client.ask_completion(*CURSOR, version=7)
    assert (await client.answer(asked))["result"]["items"] == []
    assert (await reason(client))[0] == "overtaken"


@pytest.mark.asyncio
async def test_what_was_rejected_is_told(clients: Clients) -> None:
    client = await clients.ready("a + b", "a + b", ahead=[""])
    await client.complete(*CURSOR)
    client.insert(2, *CURSOR, "x")
    typed = {"start": {"line": 1, "character": 11}, "end": {"line": 1, "character": 12}}
    client.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": DOCUMENT, "version": 3},
            "contentChanges": [{"range": typed, "text": ""}],
        },
    )
    assert await client.complete(*CURSOR) == []
    assert (await reason(client))[0] == "rejected"


@pytest.mark.asyncio
async def test_who_asked_once_is_told_of_every_change(clients: Clients) -> None:
    client = await clients.ready("a + b", "!error")
    await client.complete(*CURSOR)
    assert client.said("dg/status") == []
    await report(client)
    client.insert(2, 0, 0, "#")
    await client.complete(*CURSOR)
    await client.until(
        lambda: any(told["lastReason"] for told in client.said("dg/status")),
    )
    assert client.said("dg/status")[-1]["lastReason"]["why"] == "engine_down"


@pytest.mark.asyncio
async def test_the_status_of_other_clients_carries_state_and_model(clients: Clients) -> None:
    client = await clients.ready("a + b")
    await client.complete(*CURSOR)
    statuses = client.said("didChangeStatus")
    assert statuses[0]["state"] == "loading"
    assert (statuses[-1]["state"], statuses[-1]["model"]) == ("ready", "scripted")


@pytest.mark.asyncio
async def test_every_silence_is_in_the_log(tiny: Path) -> None:
    client = await WireClient.start(tiny, subprocess.PIPE, answers=["!error"])
    try:
        await ready(client, logLevel="info")
        await client.complete(*CURSOR)
        client.notify("exit", None)
        assert client.process.stderr is not None
        logged = await client.process.stderr.read()
        assert b"No suggestion (engine_down): The script says so." in logged
    finally:
        await client.close()


@pytest.mark.asyncio
async def test_problems_of_settings_are_listed(clients: Clients) -> None:
    client = await ready(await clients.start(), threads=0)
    assert (await report(client))["problems"] == [
        'The setting "threads" takes a whole number from 1 to 1024, not 0.'
    ]


class Told:
    """A board, and what it told."""

    def __init__(self) -> None:
        self.statuses: list[Status] = []
        self.reports: list[Report] = []
        self.board = StatusBoard(self.statuses.append, self.reports.append, lambda: NOW)
        self.board.reports = True


def test_an_engine_that_restarts_says_when_it_is_back() -> None:
    told = Told()
    told.board.set_model(ModelStatus(ModelState.READY, name="tiny"))
    told.board.set_model(ModelStatus(ModelState.RESTARTING, "It stopped.", retry_in_s=10))
    assert told.reports[-1].retry_at == "2026-01-02T03:04:15+00:00"
    assert (told.reports[-1].model, told.reports[-1].message) == ("tiny", "It stopped.")
    told.board.set_model(ModelStatus(ModelState.READY))
    assert told.reports[-1].retry_at is None


def test_what_a_request_changed_is_told_once_and_behind_its_answer() -> None:
    later: list[Callable[[], None]] = []
    statuses: list[Status] = []
    board = StatusBoard(statuses.append, lambda report: None, soon=later.append)
    board.set_model(ModelStatus(ModelState.READY))
    told = len(statuses)
    board.set_in_flight(1)
    board.silent(PAUSED)
    board.set_in_flight(0)
    assert (len(statuses), len(later)) == (told, 1)
    assert board.status.kind is StatusKind.INACTIVE  # who asks is told what is the case
    later.pop()()
    assert [status.kind for status in statuses[told:]] == [StatusKind.INACTIVE]
    board.set_in_flight(1)
    assert len(later) == 1


def test_a_request_that_was_overtaken_leaves_the_status_as_it_is() -> None:
    told = Told()
    told.board.set_model(ModelStatus(ModelState.READY))
    told.board.silent(PAUSED)
    told.board.silent(SUPERSEDED)
    assert told.board.status.kind is StatusKind.INACTIVE
    assert told.board.report.last_reason == SUPERSEDED


def completion(done: DoneKind, **ms: float) -> Completion:
    return Completion("", done, 0, 0, 0.0, ms, reason="So it is.")


@pytest.mark.parametrize(
    ("found", "why", "stage"),
    [
        (completion(DoneKind.DEADLINE, total=90, prompt=80), Why.TOO_SLOW, "prompt"),
        (completion(DoneKind.DEADLINE, total=90, prompt=8, steps=50), Why.TOO_SLOW, "steps"),
        (completion(DoneKind.DEADLINE, total=90, prompt=8), Why.TOO_SLOW, "engine"),
        (completion(DoneKind.ERROR, total=1), Why.ENGINE_DOWN, ""),
        (completion(DoneKind.CANCELLED, total=1), Why.OVERTAKEN, ""),
        (completion(DoneKind.CONVERGED, total=1), Why.NO_SUGGESTION, ""),
        (completion(DoneKind.MAX_STEPS, total=1), Why.NO_SUGGESTION, ""),
    ],
)
def test_an_empty_completion_has_its_reason(found: Completion, why: Why, stage: str) -> None:
    silence = of_completion(found, 90)
    assert (silence.why, silence.stage) == (why, stage)
    assert silence.message


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (ModelState.LOADING, Why.LOADING),
        (ModelState.RESTARTING, Why.ENGINE_DOWN),
        (ModelState.FAILED, Why.ENGINE_DOWN),
        (ModelState.CLOSED, Why.ENGINE_DOWN),
    ],
)
def test_without_an_engine_the_reason_is_its_state(state: ModelState, why: Why) -> None:
    assert without_engine(ModelStatus(state, "So it is."), "x").why is why
