"""Log lines without anybody's code: only at the level "trace" may they hold what messages held.

Our own modules log sentences made for people. What libraries log may quote whole messages, and an
exception may quote the text that it stumbled over, so of these only the outline is written.
"""

from __future__ import annotations

import logging
import traceback
from types import TracebackType

TRACE = 5
"""Below DEBUG: everything, documents included; to be asked for by name."""
FORMAT = "%(levelname)s %(name)s: %(message)s"
OURS = ("dg_lsp", "dg_engine")

_SAID_BY_US = "Unable to deserialize message"
"""pygls of parameters, which `dg_lsp.protocol` tells with the method and what is wrong."""

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class PrivateFormatter(logging.Formatter):
    """Writes a library's message as its first line without what was put into it, and exceptions
    by type and place; everything while our logger is at TRACE."""

    def __init__(self, format: str = FORMAT) -> None:
        super().__init__(format)

    def format(self, record: logging.LogRecord) -> str:
        """The line to be written; the record stays as it was."""
        if is_tracing():
            return super().format(record)
        outline = logging.makeLogRecord(record.__dict__)
        # Another handler may have left the whole traceback here.
        outline.exc_text = None
        if record.name.partition(".")[0] not in OURS:
            first = str(record.msg).partition("\n")[0]
            more = " (details at the log level trace)" if record.args else ""
            # As an argument, so that a `%` in it stays one.
            outline.msg, outline.args, outline.stack_info = "%s", (first + more,), None
        return super().format(outline)

    def formatException(self, ei: _ExcInfo) -> str:
        """The traceback, with each exception's type in place of what it says."""
        if is_tracing() or ei[1] is None:
            return super().formatException(ei)
        return "\n".join(_outline(ei[1]))


def is_news(record: logging.LogRecord) -> bool:
    """Whether nobody of ours says the same in a sentence for people: a filter for handlers."""
    return is_tracing() or not str(record.msg).startswith(_SAID_BY_US)


def is_tracing() -> bool:
    """Whether the user asked for everything."""
    return logging.getLogger(OURS[0]).getEffectiveLevel() <= TRACE


def set_level(level: str) -> None:
    """Log from "error", "warning", "info", "debug" or "trace" on."""
    logging.addLevelName(TRACE, "TRACE")
    logging.getLogger(OURS[0]).setLevel(level.upper())
    # pygls logs whole messages, which hold people's code.
    logging.getLogger("pygls").setLevel(logging.DEBUG if level == "trace" else logging.ERROR)


def _outline(error: BaseException, depth: int = 0) -> list[str]:
    """Type and places of an exception and of those that led to it."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    above = _outline(cause, depth + 1) if cause is not None and depth < 8 else []
    places = [
        f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return [*above, *places, f"{type(error).__module__}.{type(error).__qualname__}"]
