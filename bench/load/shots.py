"""What a fuzzer sends: bytes with what must come back, and the values that it plays with."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from lsprotocol import types

MessageId = int | str
DOCUMENT = "file:///project/example.py"
FIRST_ID = 1_000_000
"""Far from the ids that a client counts itself."""
DEEP = 100_000
"""Brackets inside brackets: more than any parser's stack holds."""
RESYNC = b"\r\n\r\n"
"""Ends whatever a server takes for a header."""
_ENDING = frozenset({types.EXIT, types.SHUTDOWN})
METHODS = sorted({*types.METHOD_TO_TYPES, "dg/status", "dg/didChangeFocus"} - _ENDING)
COMMANDS = ["dg.accepted", "dg.completeBlock", "dg.edit", "dg.status", "dg.nothing", ""]
JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 1.5, -0.0, 1e308, 2**31, 2**53, 2**63 - 1, 2**64, -(2**63), 10**40,
    "", "x", "\x00", "\u2028", "é😀", "\ud800", "file:///", "file:///c%3A/x", "untitled:Untitled-1",
    "vscode-notebook-cell:/a.ipynb#b", "%", ":", "a" * 5000, [], [None], {}, {"": {}}, [[[]]],
]  # fmt: skip


class Shot(NamedTuple):
    """Bytes to send; the id that must be answered exactly once, or that may be answered."""

    data: bytes
    label: str
    must: MessageId | None = None
    may: MessageId | None = None


def framed(body: bytes, header: bytes | None = None) -> bytes:
    """A body behind its header, or behind another one."""
    return (header or b"Content-Length: %d" % len(body)) + b"\r\n\r\n" + body


URIS = [value for value in JUNK if isinstance(value, str)]


def is_id(value: object) -> bool:
    """What JSON-RPC takes for an id, which an envelope keeps."""
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def encoded(message: object) -> bytes:
    # Python's encoder, for it writes what others refuse: halves of characters, great numbers.
    return json.dumps(message).encode()
