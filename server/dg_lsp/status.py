"""What the editor is told about us: `didChangeStatus`, and progress while the model loads."""

from __future__ import annotations

import enum
from collections.abc import Callable

import msgspec


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


class StatusBoard:
    """Puts the model's state and the work in flight into one status, and tells of changes."""

    def __init__(self, tell: Callable[[Status], None]) -> None:
        self._tell = tell
        self._told: Status | None = None
        self._in_flight = 0
        self._note = ""
        self._note_kind = StatusKind.WARNING
        self.model = ModelStatus(ModelState.CLOSED)

    @property
    def status(self) -> Status:
        """What is the case now."""
        state = self.model.state
        busy = self._in_flight > 0 or state in (ModelState.LOADING, ModelState.RESTARTING)
        if self._note and state is ModelState.READY:
            return Status(busy, self._note_kind, self._note)
        return Status(busy, _KINDS[state], self.model.message or _MESSAGES[state])

    def set_model(self, model: ModelStatus) -> None:
        """The engine changed its state."""
        self.model = model
        if model.state is ModelState.READY and self._note_kind is StatusKind.WARNING:
            self._note = ""  # what went wrong was the engine that is no more
        self._tell_changes()

    def note(self, message: str, kind: StatusKind = StatusKind.WARNING) -> None:
        """Why the last request came to nothing; an empty note takes the last one back."""
        self._note, self._note_kind = message, kind
        self._tell_changes()

    def set_in_flight(self, count: int) -> None:
        """How many requests are being worked on."""
        self._in_flight = count
        self._tell_changes()

    def _tell_changes(self) -> None:
        status = self.status
        if status != self._told:
            self._told = status
            self._tell(status)
