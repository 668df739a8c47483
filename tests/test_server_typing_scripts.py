"""Whatever is typed while answers are under way, no letter is doubled, lost or drawn too late."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests import server_fixtures
from tests.server_fixtures import Clients
from tests.test_server_typing import Typist

tiny = server_fixtures.tiny

TEXTS = ["a + b", "max(a, b)", "a", "(b)", " + c"]
FILTERED = ["b", "max", "(b", "max(a, b"]
"""What is left of some of them beside brackets that would be doubled or lack their partner."""
STEPS = st.one_of(
    st.tuples(st.just("type"), st.sampled_from("ab +(c")),
    st.tuples(st.sampled_from(["along", "along", "pair", "erase", "right", "away", "wait"])),
)


class Script:
    """A typist whose line is known as a plain string, and every line that may be made of it."""

    def __init__(self, typist: Typist) -> None:
        self.typist = typist
        self.start = typist.column
        self.middle = ""
        self.lines = {typist.version: ""}
        self.makeable: set[str] = set()
        self.asked: list[int] = []

    @property
    def at(self) -> int:
        return self.typist.column - self.start

    def do(self, name: str, *rest: str) -> None:
        at, middle = self.at, self.middle
        if name in ("type", "along", "pair"):
            goes_on = [m[at] for m in sorted(self.makeable) if m[:at] == middle[:at] and m[at:]]
            letter = rest[0] if rest else goes_on[0] if goes_on and name == "along" else "("
            closer = ")" if name == "pair" else ""
            self.typist.type(letter, closer)
            self.middle = middle[:at] + letter + closer + middle[at:]
        elif name == "erase" and at:
            self.typist.erase()
            self.middle = middle[: at - 1] + middle[at:]
        elif name == "right" and at < len(middle):
            self.typist.column += 1
        self.lines[self.typist.version] = self.middle

    def ask(self) -> int:
        at, middle = self.at, self.middle
        self.makeable |= {middle[:at] + text + middle[at:] for text in (*TEXTS, *FILTERED)}
        self.asked.append(self.typist.client.ask_completion(self.typist.line, self.typist.column))
        return self.asked[-1]

    async def check(self) -> None:
        """Every answer makes, in the version that it names, a line that the engine meant."""
        for message in self.asked:
            for item in (await self.typist.client.answer(message))["result"]["items"]:
                line = self.lines[item["command"]["arguments"][0]["version"]]
                at = item["range"]["start"]["character"] - self.start
                assert line[:at] + item["insertText"] + line[at:] in self.makeable


async def play(tiny: Path, texts: list[str], steps: list[tuple[str, ...]]) -> None:
    clients = Clients(tiny)
    try:
        script = Script(Typist(await clients.ready(*texts)))
        for step in steps:
            script.do(*step)
            message = script.ask()
            if step[0] == "wait":
                await script.typist.client.answer(message)
            if step[0] == "away":
                await script.typist.client.complete(4, 0)
        await script.check()
    finally:
        await clients.close()


@settings(
    max_examples=25,
    deadline=None,
    # Each example starts a server: a long one says enough.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), st.lists(STEPS, max_size=16))
def test_no_letter_is_doubled_or_lost_whatever_is_typed(
    tiny: Path, texts: list[str], steps: list[tuple[str, ...]]
) -> None:
    asyncio.run(play(tiny, texts, steps))
