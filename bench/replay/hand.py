"""A hand at a keyboard: the text to be typed as single keys, with pauses and mended errors.

Gaps between keys are drawn from lognormal distributions, whose long tail is what people's typing
shows (Dhakal et al., "Observations on Typing from 136 Million Keystrokes", CHI 2018).
"""

from __future__ import annotations

import math
import random
import re

from dg_lsp.bench.sessions import AcceptPolicy, Buffer, Delete, Event, Insert, Move, Pause

from bench.replay.hunks import Change

KEY_MS = 140
"""Median gap between two keys inside a word."""
SPREAD = 0.45
"""Sigma of the gaps' logarithm."""
WORD, LINE, NOTICE, BACKSPACE = 1.6, 3.0, 2.8, 0.8
"""What a gap grows by before a new word, behind a line break, before an error is noticed, and
while backspace is held."""
THINK_MS = 1800
"""Median pause before a change elsewhere."""
TYPO_SHARE = 0.025
"""Letters that are hit wrong."""
LATE_NOTICE = 2
"""How many further keys an error may survive at most."""
MIN_CHARS = 3
"""A suggestion shorter than this is not worth the Tab key."""

_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_KEY = re.compile(r"\n[ \t]*|.", re.DOTALL)


class Hand:
    """Records what one author does to one text."""

    def __init__(self, text: str, rng: random.Random) -> None:
        self.buffer = Buffer(text)
        self.events: list[Event] = [AcceptPolicy(0, MIN_CHARS)]
        self._rng = rng
        self._now = 0.0

    def make(self, changes: list[Change]) -> None:
        """Make changes of the original text from its top to its end."""
        grown = 0
        for change in changes:
            self._think()
            start, end = change.start + grown, change.end + grown
            self._move(end)
            if end > start:
                self._take_away(end - start)
            keys: list[str] = _KEY.findall(change.text)
            for place, key in enumerate(keys):
                if self._rng.random() < TYPO_SHARE:
                    self._err(key, keys[place + 1 :])
                self._type(key)
            grown += len(change.text) - (end - start)

    def _err(self, key: str, following: list[str]) -> None:
        """Hit a neighbour of a key, go on for a while, notice it and take all of it back."""
        wrong = _neighbour(key, self._rng)
        if wrong is None:
            return
        missed = [wrong]
        for later in following[:LATE_NOTICE]:
            if later.isalnum() and self._rng.random() < 0.4:
                missed.append(later)
        for hit in missed:
            self._type(hit)
        self._wait(NOTICE)
        for _ in missed:
            self._wait(BACKSPACE)
            self._do(Delete(self._at, before=1))

    def _type(self, key: str) -> None:
        before = self.buffer.text[self.buffer.cursor - 1 : self.buffer.cursor]
        new_word = key.isalnum() and not before.isalnum()
        self._wait(LINE if before == "\n" or key.startswith("\n") else WORD if new_word else 1.0)
        self._do(Insert(self._at, key))

    def _take_away(self, count: int) -> None:
        """A few characters one by one, more of them as a selection."""
        if count > 6:
            self._wait(LINE)
            self._do(Delete(self._at, before=count))
            return
        for _ in range(count):
            self._wait(BACKSPACE)
            self._do(Delete(self._at, before=1))

    def _move(self, offset: int) -> None:
        self._do(Move(self._at, offset))

    def _think(self) -> None:
        ms = round(self._drawn(THINK_MS))
        self._do(Pause(self._at, ms))
        self._now += ms

    def _wait(self, factor: float) -> None:
        self._now += self._drawn(KEY_MS * factor)

    def _drawn(self, median: float) -> float:
        return self._rng.lognormvariate(math.log(median), SPREAD)

    @property
    def _at(self) -> int:
        return round(self._now)

    def _do(self, event: Event) -> None:
        self.events.append(event)
        self.buffer.apply(event)


def _neighbour(key: str, rng: random.Random) -> str | None:
    """A key next to the right one; None for what is no letter or digit."""
    for row in _ROWS:
        place = row.find(key.lower()) if len(key) == 1 else -1
        if place >= 0:
            beside = [row[i] for i in (place - 1, place + 1) if 0 <= i < len(row)]
            return rng.choice(beside)
    return None
