"""An offer: texts that were suggested at one place, and whether they still fit what is there.

Texts are compared as text, never as tokens, so a cursor inside a token is a place like any other.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from dg_lsp.documents import Document
from dg_lsp.lines import Lines, alike, body_of, ending_of
from dg_lsp.shown.changes import Change
from dg_lsp.shown.pairs import CLOSERS, MOST_CLOSERS, are_owed
from dg_lsp.uris import normalised


class Fate(enum.StrEnum):
    """What became of an offer."""

    OPEN = "open"
    TAKEN = "taken"
    """Its text stands in the document."""
    PASSED = "passed"
    """Its text stands in the document and more was typed behind it."""
    REJECTED = "rejected"
    """The user saw it and went another way: it is not made there again, unless it is typed on."""


class Offer(msgspec.Struct, frozen=True):
    """Texts for one place of a document; `line` follows the edits elsewhere."""

    uri: str
    """Normalised."""
    line: int
    before: str
    """The line up to the place."""
    after: str
    """The line from the place on, without its break."""
    texts: tuple[str, ...]
    """Best first, with the document's line breaks."""
    seen: bytes = b""
    """The key of what the model saw."""
    choices: int = 1
    """How many texts were asked for."""
    height: int = 1
    """How many lines the place takes now: one more for each line break typed there."""
    alone: bool = True
    """Whether nothing but this place changed since the model was asked."""
    fate: Fate = Fate.OPEN
    common: int = 0
    """How many characters at the place were those of a text when that last was looked at."""
    drawn: bool = False
    """Whether the editor said that it drew the offer."""
    number: int = 0
    """Its name in one session; 0 as long as it has none."""

    @classmethod
    def at(
        cls,
        document: Document,
        line: int,
        column: int,
        texts: Iterable[str],
        *,
        seen: bytes = b"",
        choices: int = 1,
    ) -> Offer:
        """Texts for a place, in code points, of a document's version."""
        body = body_of(document.lines[line])
        return cls(
            uri=normalised(document.uri),
            line=line,
            before=body[:column],
            after=body[column:],
            texts=tuple(texts),
            seen=seen,
            choices=choices,
        )


class Typed(NamedTuple):
    """What stands between an offer's place and the cursor, and the closers behind the cursor."""

    text: str
    closers: str


def typed_at(offer: Offer, lines: Lines, line: int, column: int) -> Typed | None:
    """What was typed from an offer's place to a cursor; None when the cursor is not there."""
    if line < offer.line or line >= lines.count:
        return None
    if line > offer.line + max(text.count("\n") + text.count("\r") for text in offer.texts):
        return None
    here, known = lines[line], len(offer.before)
    # As few copies as there can be: a line may be a megabyte long.
    behind = body_of(here[column:])
    if not behind.endswith(offer.after):
        return None
    if line == offer.line:
        if column < known or not here.startswith(offer.before):
            return None
        typed = here[known:column]
    else:
        joined = "".join([*lines.between(offer.line, line), here[:column]])
        if len(joined) < known or not joined.startswith(offer.before):
            return None
        typed = joined[known:]
    closers = behind[: len(behind) - len(offer.after)]
    return Typed(typed, closers) if are_owed(closers, typed) else None


def rests(offer: Offer, typed: Typed) -> list[str]:
    """What is left to type of each text, without the closers that stand there already.

    A text whose end is not those closers is left out: to insert it would say them twice.
    """
    left = (t[len(typed.text) :] for t in offer.texts if t.startswith(typed.text))
    cut = (rest[: len(rest) - len(typed.closers)] for rest in left if rest.endswith(typed.closers))
    return list(dict.fromkeys(rest for rest in cut if rest))


def would_repeat(offer: Offer, typed: Typed, text: str) -> bool:
    """Whether `text` at the cursor would make what one of the offer's texts makes."""
    return typed.text + text + typed.closers in offer.texts


def without_typed(offer: Offer, lines: Lines, line: int) -> Lines:
    """The document as it was before anything was typed at the offer's place."""
    old = offer.before + offer.after + ending_of(lines[line])
    return lines.replaced(offer.line, line + 1, [old])


def moved(offer: Offer, new: Lines, change: Change) -> Offer | None:
    """The offer after the edit that made `new`; None when its place is gone."""
    end = offer.line + offer.height
    if change.old_last <= offer.line:
        return msgspec.structs.replace(offer, line=offer.line + change.grown, alone=False)
    now = msgspec.structs.replace(offer, height=max(offer.height + change.grown, 1))
    middle = _middle(now, new)
    if change.first >= end:
        # A break typed at the end of a line looks like a line that was added below it.
        typed = change.first == change.old_last == end and middle is not None
        if typed and any(agrees(text, middle or "") for text in offer.texts):
            return _after_typing(now, middle or "")
        return msgspec.structs.replace(offer, alone=False)
    if change.first < offer.line or change.old_last > end:
        return None
    if offer.fate is Fate.REJECTED:
        return now if middle is None else _after_refusal(now, middle)
    return None if middle is None else _after_typing(now, middle)


def _after_refusal(offer: Offer, middle: str) -> Offer:
    """A rejected offer once `middle` stands at its place: open when more of it was typed.

    A typo that was erased is no wish to hear nothing on the rest of the line.
    """
    typed_on = _common(offer, middle) > offer.common
    if typed_on and any(agrees(text, middle) for text in offer.texts):
        return _after_typing(msgspec.structs.replace(offer, fate=Fate.OPEN), middle)
    return offer


def _common(offer: Offer, middle: str) -> int:
    """How far `middle` goes along with one of the offer's texts."""
    return max(alike(text, middle) for text in offer.texts)


def _after_typing(offer: Offer, middle: str) -> Offer:
    """The offer once `middle` stands at its place."""
    offer = msgspec.structs.replace(offer, common=_common(offer, middle))
    if middle in offer.texts:
        return msgspec.structs.replace(offer, fate=Fate.TAKEN)
    passed = any(middle.startswith(text) for text in offer.texts)
    if (passed or offer.fate is Fate.OPEN) and any(agrees(t, middle) for t in offer.texts):
        return msgspec.structs.replace(offer, fate=Fate.OPEN)
    if passed:
        return msgspec.structs.replace(offer, fate=Fate.PASSED)
    # Typed against, or taken and taken back.
    return rejected(offer)


def rejected(offer: Offer) -> Offer:
    """The offer, not to be made there again."""
    return msgspec.structs.replace(offer, fate=Fate.REJECTED)


def agrees(text: str, middle: str) -> bool:
    """Whether `middle` is a start of `text`, with or without closers that it owes behind it."""
    for count in range(min(len(middle), MOST_CLOSERS) + 1):
        typed, closers = middle[: len(middle) - count], middle[len(middle) - count :]
        if not CLOSERS.issuperset(closers):
            return False
        if text.startswith(typed) and are_owed(closers, typed):
            return True
    return False


def _middle(offer: Offer, lines: Lines) -> str | None:
    """All that stands at the offer's place, None when the text around it is not what it was."""
    if offer.line + offer.height > lines.count:
        return None
    held = lines.between(offer.line, offer.line + offer.height)
    held[-1] = body_of(held[-1])
    joined = "".join(held)
    size = len(joined) - len(offer.before) - len(offer.after)
    if size < 0 or not joined.startswith(offer.before) or not joined.endswith(offer.after):
        return None
    return joined[len(offer.before) : len(offer.before) + size]
