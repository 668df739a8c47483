"""Before the colon of a head that is whole, only what the model is sure of is shown unasked."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest
from dg_lsp.lines import Lines
from dg_lsp.prompts.view import CursorView, place_of, view_at
from dg_lsp.restraint import WHOLE_HEAD, confidence_wanted, is_at_whole_head

from tests import server_fixtures
from tests.wire_client import WireClient

tiny = server_fixtures.tiny
HEAD = "def f(ready):\n    if ready:\n        return 1\n"


def view(marked: str, language: str = "python") -> CursorView:
    """At ‸."""
    text = marked.replace("‸", "")
    line, column = place_of(text, marked.index("‸"))
    return view_at(Lines.of(text), line, column, path="a.py", language=language)


@pytest.mark.parametrize(
    "marked",
    [
        "if ready‸:\n    go()\n",
        "if ready‸ :\n    go()\n",
        "if a:\n    b\nelif ready‸:\n    go()\n",
        "if a:\n    b\nelse‸:\n    go()\n",
        "try:\n    a\nexcept OSError as error‸:\n    go()\n",
        "try:\n    a\nfinally‸:\n    go()\n",
        "for key in keys‸:\n    go()\n",
        "async def f():\n    async with lock‸:\n        go()\n",
        "match x:\n    case [a, b]‸:\n        go()\n",
        "class Reader‸:\n    pass\n",
        "def f(a: int) -> str‸:\n    pass\n",
        "def f(\n    a: int,\n) -> str‸:\n    pass\n",
        "if (\n    a\n    and b\n)‸:\n    go()\n",
        # the window ends inside the docstring
        'class Reader‸:\n    """' + "What it reads.\n    " * 200 + '"""\n',
    ],
)
def test_a_head_is_whole(marked: str):
    assert is_at_whole_head(view(marked))


@pytest.mark.parametrize(
    "marked",
    [
        "if ready and ‸:\n    go()\n",
        "if ‸:\n    go()\n",
        "for key ‸:\n    go()\n",
        "def ‸:\n    pass\n",
        "class Reader(‸:\n    pass\n",
        "if ready‸\n    go()\n",
        "if ready:‸\n    go()\n",
        "x‸: int = 3\n",
        "x = {a‸: 1}\n",
        "x = y[a‸:]\n",
        "f = lambda a‸: a\n",
        "x = ready‸\n",
        "print(‸)\n",
    ],
)
def test_elsewhere_nothing_more_is_asked_for(marked: str):
    assert not is_at_whole_head(view(marked))
    assert confidence_wanted(0.35, view(marked)) == 0.35


def test_only_python_has_such_heads():
    assert not is_at_whole_head(view("switch (a) {\n  case b‸:\n    go();\n}\n", "javascript"))


def test_more_is_asked_for_than_the_setting_unless_it_asks_for_more_or_nothing():
    whole = view("if ready‸:\n    go()\n")
    asked = [confidence_wanted(least, whole) for least in (0.0, 0.35, 0.95)]
    assert asked == [0.0, WHOLE_HEAD, 0.95]


@pytest.mark.asyncio
@pytest.mark.parametrize(("sure", "kind", "shown"), [(0.6, 2, 0), (0.9, 2, 1), (0.6, 1, 1)])
async def test_it_is_shown_to_whoever_asks_or_where_the_model_is_sure(
    tiny: Path, sure: float, kind: int, shown: int
):
    client = await WireClient.start(
        tiny, subprocess.DEVNULL, answers=[" and steady"], score=math.log(sure)
    )
    try:
        await client.initialize()
        client.open(HEAD)
        assert len(await client.complete(1, len("    if ready"), kind=kind)) == shown
        if not shown:
            reason = (await client.request("dg/status", None))["result"]["lastReason"]
            assert reason["why"] == "unsure"
            assert (
                reason["message"]
                == "The model was 60% sure; a line that is whole already wants 80%."
            )
    finally:
        await client.close()
