"""What a window and the daemon say beyond dg_engine.wire, in frames of the same form."""

from __future__ import annotations

import msgspec

from dg_engine.choice import EngineChoice
from dg_engine.wire import Cancel, Close, Ping, Reply, Submit, WireError, framed

PROTOCOL = 1


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A window's first message: what it wants an engine for."""

    protocol: int
    version: str
    """Of dg-lsp; a newer window may replace an older daemon."""
    pid: int
    name: str
    """What people call the window, such as the editor's name."""
    model: str
    """The checkpoint folder."""
    threads: int | None = None
    dtype: str | None = None
    choice: EngineChoice = EngineChoice()
    """Which engine, and where it is; no key."""


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """Instead of Hello: how are you? Answered with DaemonStatus."""


class Quit(msgspec.Struct, frozen=True, tag="quit"):
    """Instead of Hello: end, whatever runs."""


class Focus(msgspec.Struct, frozen=True, tag="focus"):
    """Whether the user looks at the window; None where it does not know, as before the first."""

    focused: bool | None


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """Jobs may come."""

    protocol: int
    version: str
    pid: int
    hears_focus: bool = False
    """Whether Focus may come as well; a daemon from before it lets go of a window that says it."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """No jobs will be taken; one sentence."""

    message: str
    retry: bool
    """Whether this daemon ends now, so that another one can be started."""


class WindowStatus(msgspec.Struct, frozen=True):
    """A window as the daemon sees it."""

    name: str
    pid: int
    waiting: int
    running: int
    done: int
    seconds: float
    """Of the engine's time that its jobs took."""
    p50_ms: float
    p90_ms: float
    """From a job's arrival to its end, of the last ones."""
    cached: float
    """The part of its prompts' tokens that were cached, 0 to 1."""
    focused: bool | None = None
    """Whether the user looks at it; None where it never said so."""


class EngineReport(msgspec.Struct, frozen=True):
    """One model as the daemon holds it."""

    model: str
    state: str
    message: str
    pid: int | None
    memory_bytes: int | None
    """Resident; None where the system does not tell or nothing is loaded."""
    windows: list[WindowStatus]


class DaemonStatus(msgspec.Struct, frozen=True, tag="status"):
    """Everything that `dg-lsp status` shows."""

    version: str
    pid: int
    uptime_s: float
    memory_bytes: int | None
    engines: list[EngineReport]


FromWindow = Hello | Ask | Quit | Focus | Submit | Cancel | Close | Ping
ToWindow = Welcome | Refused | DaemonStatus | Reply

_from_window = msgspec.msgpack.Decoder(FromWindow)
_answers = msgspec.msgpack.Decoder(Welcome | Refused | DaemonStatus)


def packed(message: FromWindow | ToWindow) -> bytes:
    """One message as a frame."""
    return framed(message)


def unpack_from_window(body: bytes) -> FromWindow:
    """A message from a window."""
    try:
        return _from_window.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError(f"Not a message of a window: {error}") from error


def unpack_answer(body: bytes) -> Welcome | Refused | DaemonStatus:
    """The daemon's first message."""
    try:
        return _answers.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError(f"Not the daemon's answer: {error}") from error
