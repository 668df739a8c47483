"""What the editor is told about us: how the engine stands, and why nothing was suggested."""

from __future__ import annotations

import datetime
import enum
import logging
from collections.abc import Callable

import msgspec

logger = logging.getLogger(__name__)


class ModelState(enum.StrEnum):
    """What the engine does."""

    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    CLOSED = "closed"


class ModelStatus(msgspec.Struct, frozen=True):
    """The engine's state and a sentence for people."""

    state: ModelState
    message: str = ""
    name: str = ""
    """Of the model; empty where it stays what it was."""
    retry_in_s: float | None = None
    """Seconds until the engine is started again, when it is restarting."""


StatusListener = Callable[[ModelStatus], None]


class StatusKind(enum.StrEnum):
    """How serious a status is; names as clients know them."""

    NORMAL = "Normal"
    WARNING = "Warning"
    ERROR = "Error"
    INACTIVE = "Inactive"


class Status(msgspec.Struct, frozen=True):
    """The parameters of `didChangeStatus`."""

    busy: bool
    kind: StatusKind
    message: str
    state: ModelState
    model: str
    """Its name; empty before the first is asked for."""


class Why(enum.StrEnum):
    """Why a request for a suggestion was answered with nothing."""

    LOADING = "loading"
    EXCLUDED = "excluded"
    PAUSED = "paused"
    TOO_SLOW = "too_slow"
    UNSURE = "unsure"
    ENGINE_DOWN = "engine_down"
    NO_SUGGESTION = "no_suggestion"
    REJECTED = "rejected"
    """The user refused it at this place."""
    OVERTAKEN = "overtaken"
    """The document or the wish changed before there was an answer."""
    NOT_OPEN = "not_open"


class Silence(msgspec.Struct, frozen=True):
    """That nothing was suggested, and the reason in one sentence."""

    why: Why
    message: str
    stage: str = ""
    """What took the time, when it was too slow."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `dg/status` and the parameters of the notification."""

    state: ModelState
    model: str
    """The model's name."""
    busy: bool
    kind: StatusKind
    message: str
    last_latency_ms: float | None = None
    """Of the last suggestion, from its request to its answer."""
    last_reason: Silence | None = None
    """Why the last request was answered with nothing; null when it was not."""
    retry_at: str | None = None
    """When the engine is started again (RFC 3339), while it is down."""
    problems: list[str] = []
    """What is wrong with the settings, a sentence each."""


_KINDS = {
    ModelState.LOADING: StatusKind.INACTIVE,
    ModelState.READY: StatusKind.NORMAL,
    ModelState.RESTARTING: StatusKind.WARNING,
    ModelState.FAILED: StatusKind.ERROR,
    ModelState.CLOSED: StatusKind.INACTIVE,
}
_MESSAGES = {
    ModelState.LOADING: "The model is loading; suggestions come as soon as it is ready.",
    ModelState.READY: "",
    ModelState.RESTARTING: "The engine stopped and is being restarted.",
    ModelState.FAILED: "The engine failed; see the log, then restart the server.",
    ModelState.CLOSED: "The engine is closed.",
}
_NOTED = {
    Why.EXCLUDED: StatusKind.INACTIVE,
    Why.PAUSED: StatusKind.INACTIVE,
    Why.TOO_SLOW: StatusKind.WARNING,
    Why.ENGINE_DOWN: StatusKind.WARNING,
}
"""Silences that the status shows without being asked; the others are of the moment."""


def _now() -> datetime.datetime:
    return datetime.datetime.now().astimezone()


class StatusBoard:
    """Puts the model's state and the work in flight into one status, and tells of changes."""

    def __init__(
        self,
        tell: Callable[[Status], None],
        tell_report: Callable[[Report], None],
        now: Callable[[], datetime.datetime] = _now,
        soon: Callable[[Callable[[], None]], object] = lambda work: work(),
    ) -> None:
        """What requests change is told by `soon`, so that an answer need not wait for it."""
        self._tell = tell
        self._tell_report = tell_report
        self._now = now
        self._soon = soon
        self._will_tell = False
        self._told: Status | None = None
        self._told_report: Report | None = None
        self._in_flight = 0
        self._note: Silence | None = None
        self._last: Silence | None = None
        self._latency_ms: float | None = None
        self._retry_at: str | None = None
        self._problems: list[str] = []
        self.model = ModelStatus(ModelState.CLOSED)
        self.reports = False
        """Whether the editor wants to be told of every report."""

    @property
    def status(self) -> Status:
        """What is the case now."""
        state, name = self.model.state, self.model.name
        works = self._in_flight > 0 and state is not ModelState.FAILED  # that answers at once
        busy = works or state in (ModelState.LOADING, ModelState.RESTARTING)
        if self._note is not None and state is ModelState.READY:
            return Status(busy, _NOTED[self._note.why], self._note.message, state, name)
        message = self.model.message or _MESSAGES[state]
        return Status(busy, _KINDS[state], message, state, name)

    @property
    def report(self) -> Report:
        """All that there is to say."""
        status = self.status
        return Report(
            state=status.state,
            model=status.model,
            busy=status.busy,
            kind=status.kind,
            message=status.message,
            last_latency_ms=self._latency_ms,
            last_reason=self._last,
            retry_at=self._retry_at,
            problems=self._problems,
        )

    def set_model(self, model: ModelStatus) -> None:
        """The engine changed its state."""
        self.model = msgspec.structs.replace(model, name=model.name or self.model.name)
        self._retry_at = None
        if model.retry_in_s is not None:
            at = self._now() + datetime.timedelta(seconds=model.retry_in_s)
            self._retry_at = at.isoformat(timespec="seconds")
        noted = self._note
        if model.state is ModelState.READY and noted and _NOTED[noted.why] is StatusKind.WARNING:
            self._note = None  # what went wrong was the engine that is no more
        self._tell_changes()

    def silent(self, silence: Silence) -> None:
        """A request was answered with nothing."""
        logger.info("No suggestion (%s): %s", silence.why, silence.message)
        self._last = silence
        if silence.why is not Why.OVERTAKEN:  # the request that overtook it says how things are
            self._note = silence if silence.why in _NOTED else None
        self._tell_soon()

    def answered(self, ms: float) -> None:
        """A request was answered with a suggestion after `ms`."""
        self._last = self._note = None
        self._latency_ms = round(ms, 1)
        self._tell_soon()

    def set_problems(self, problems: list[str]) -> None:
        """What is wrong with the settings."""
        self._problems = problems
        self._tell_reports()

    def set_in_flight(self, count: int) -> None:
        """How many requests are being worked on."""
        self._in_flight = count
        self._tell_soon()

    def _tell_soon(self) -> None:
        if not self._will_tell:
            self._will_tell = True
            self._soon(self._tell_changes)

    def _tell_changes(self) -> None:
        self._will_tell = False
        status = self.status
        if status != self._told:
            self._told = status
            self._tell(status)
        self._tell_reports()

    def _tell_reports(self) -> None:
        if self.reports and (report := self.report) != self._told_report:
            self._told_report = report
            self._tell_report(report)
