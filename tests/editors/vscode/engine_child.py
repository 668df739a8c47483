"""An engine process that says what a script tells it to: `-m tests.editors.vscode.engine_child`.

The script (a JSON file) holds `lines`, whole lines that it completes as far as they are typed; and
`edits`, from instructions to what they replace with what. It is read anew for every job. What the
jobs show goes into `prompts.txt` beside it.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame, Role
from dg_engine.tokenizer import Tokenizer
from dg_engine.wire import (
    PROTOCOL,
    Cancel,
    Close,
    Ping,
    Pong,
    Progress,
    Ready,
    Submit,
    pack,
    read_body,
    unpack_request,
)

CHOICES = 3
SCORE_STEP = 0.3
"""By so much each choice is less likely than the one before; too unlikely ones are left out."""


class ScriptedChild:
    """Answers jobs in turn, each after the script's `delay_ms`."""

    def __init__(self, folder: Path, script: Path) -> None:
        self._tokenizer = Tokenizer(folder)
        self._script = script
        self._jobs: queue.Queue[CanvasJob | None] = queue.Queue()
        self._cancelled: set[str] = set()
        self._pen = threading.Lock()

    def serve(self) -> None:
        """Read requests until the input ends."""
        info = EngineInfo(
            model="scripted",
            canvas_length=256,
            vocab_size=self._tokenizer.vocab_size,
            tokenizer_digest=self._tokenizer.digest,
            device="none",
            dtype="none",
            parameters=0,
            causal_predicts=True,
        )
        threading.Thread(target=self._work, daemon=True).start()
        self._say(Ready(info, PROTOCOL, 0.0))
        while (body := read_body(sys.stdin.buffer)) is not None:
            match unpack_request(body):
                case Submit(job):
                    self._jobs.put(job)
                case Cancel(job):
                    self._cancelled.add(job)
                case Ping(count):
                    self._say(Pong(count, self._jobs.qsize()))
                case Close():
                    return

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            script = json.loads(self._script.read_text())
            with (self._script.parent / "prompts.txt").open("a") as shown:
                shown.write(self._tokenizer.decode([*job.prompt, *job.canvas]) + "\n")
            time.sleep(script.get("delay_ms", 0) / 1e3)
            if job.id in self._cancelled:
                frame = Frame(job.id, 0, [], done=Done(DoneKind.CANCELLED))
            elif Role.SEED in job.roles:
                frame = self._edited(job, script)
                self._say(Progress(msgspec.structs.replace(frame, done=None)))
                time.sleep(script.get("draft_ms", 0) / 1e3)
                frame = msgspec.structs.replace(frame, step=2)
            else:
                frame = self._completed(job, script)
            self._say(Progress(frame))

    def _completed(self, job: CanvasJob, script: dict[str, Any]) -> Frame:
        first = job.roles.index(Role.HOLE)
        ahead = self._tokenizer.decode(job.canvas[:first])
        line = (self._before(job) + ahead).rpartition("\n")[2]
        rests = [w[len(line) :] for w in script["lines"] if w.startswith(line) and w != line]
        texts = [self._tokenizer.encode(rest) for rest in rests[:CHOICES]] or [[]]
        behind = [i for i, r in zip(job.canvas, job.roles, strict=True) if r == Role.PIN][first:]
        rows = [[*job.canvas[:first], *ids, *behind][: len(job.canvas)] for ids in texts]
        widths = [min(len(ids), len(job.canvas)) for ids in texts]
        return self._frame(job, rows, widths)

    def _edited(self, job: CanvasJob, script: dict[str, Any]) -> Frame:
        wish = self._before(job).rpartition("\n")[2].lstrip(" #")
        seeds = [i for i, r in zip(job.canvas, job.roles, strict=True) if r == Role.SEED]
        free = [i for i, r in enumerate(job.roles) if r != Role.PIN]
        text = self._tokenizer.decode(seeds)
        for old, new in script["edits"].get(wish, []):
            text = text.replace(old, new)
        ids = self._tokenizer.encode(text)
        ids += [self._tokenizer.token_id("<eos>") or 0] * (len(free) - len(ids))
        row = list(job.canvas)
        for place, token in zip(free, ids[: len(free)], strict=True):
            row[place] = token
        return self._frame(job, [row], [len(row)])

    def _before(self, job: CanvasJob) -> str:
        start = job.prompt.index(self._tokenizer.token_id("<fim_prefix>") or 0)
        return self._tokenizer.decode(job.prompt[start:])

    def _frame(self, job: CanvasJob, rows: list[list[int]], widths: list[int]) -> Frame:
        return Frame(
            job=job.id,
            step=1,
            ids=rows,
            widths=widths,
            settled=[0] * len(rows),
            entropy=[0.5] * len(rows[0]),
            scores=[-0.1 - SCORE_STEP * row for row in range(len(rows))],
            forwards=1,
            ms={"steps": 1.0},
            done=Done(DoneKind.CONVERGED),
        )

    def _say(self, reply: Ready | Progress | Pong) -> None:
        with self._pen:
            sys.stdout.buffer.write(pack(reply))
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    script = Path(sys.argv[2])
    (script.parent / "engine.pid").write_text(str(os.getpid()))
    ScriptedChild(Path(sys.argv[1]), script).serve()
