"""The scripted server, with answers that may offer several texts: `first | second | third`.

The request `test/shown_to_user` tells what the server knows of its suggestions: which were drawn,
and which that were seen were of use. `test/focus` tells what it was told of the editor's focus.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from dg_engine.job import CanvasJob, Done, Frame
from dg_lsp.language_server import Server
from dg_lsp.server import run_stdio

from tests import scripted_server
from tests.scripted_engine import ScriptedEngine

SEPARATOR = " | "


class ChoosyEngine(ScriptedEngine):
    """Gives one row for each of an answer's texts."""

    def _frame(self, job: CanvasJob, step: int, answer: str, done: Done | None) -> Frame:
        one = functools.partial(super()._frame, job, step, done=done)
        frames = [one(text) for text in answer.split(SEPARATOR)]
        return msgspec.structs.replace(
            frames[0],
            ids=[row for frame in frames for row in frame.ids],
            widths=[width for frame in frames for width in frame.widths],
            settled=[0] * len(frames),
            scores=[score for frame in frames for score in frame.scores],
        )


def choosy_server(folder: Path, script: dict[str, Any]) -> Server:
    """A server that tells what it learned of the user."""
    server = scripted_server.scripted_server(folder, script)

    @server.feature("test/shown_to_user")
    def shown_to_user(params: Any) -> object:
        desk = server.session.desk
        last = desk.shelf.last
        return {
            "drawn": last is not None and last.drawn,
            "outcomes": list(desk.habits.outcomes),
        }

    looked_at: list[bool | None] = []
    set_focus = server.session.engine.set_focus

    def heard(focused: bool | None) -> None:
        looked_at.append(focused)
        set_focus(focused)

    server.session.engine.set_focus = heard

    @server.feature("test/focus")
    def focus(params: Any) -> object:
        return {"told": looked_at}

    return server


if __name__ == "__main__":
    scripted_server.ScriptedEngine = ChoosyEngine
    folder, script = Path(sys.argv[1]), json.loads(sys.argv[2])
    run_stdio(functools.partial(choosy_server, folder, script))
