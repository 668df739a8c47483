"""An engine process without a model: `python scripted_child.py [LOAD_SECONDS]`.

It speaks dg_engine.wire as dg_engine.child does. A job's first prompt token says what becomes of
it: milliseconds from one frame to the next, or one of the faults below. A job has `max_steps`
frames; the last one carries the canvas plus one, so that nobody gets another's answer unseen.
"""

from __future__ import annotations

import sys
import threading
import time

from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame
from dg_engine.outbox import Outbox
from dg_engine.wire import (
    HEADER,
    PROTOCOL,
    Cancel,
    Close,
    Ping,
    Pong,
    Ready,
    Submit,
    pack,
    read_body,
    unpack_request,
)

DIE, NOISE, HALF, FAIL = 9_001, 9_002, 9_003, 9_004
"""Exit at once; write what is no frame; write half a frame and exit; an ERROR frame."""

INFO = EngineInfo(
    model="scripted",
    canvas_length=256,
    vocab_size=10_000,
    tokenizer_digest="0" * 64,
    device="cpu",
    dtype="none",
    parameters=1,
    causal_predicts=True,
)


class Scripted:
    """One job after the other, the most urgent first, as the real worker does."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.jobs: dict[str, CanvasJob] = {}
        self.steps: dict[str, int] = {}
        self.cancelled: set[str] = set()
        self.wake = threading.Condition()

    def work(self) -> None:
        while True:
            with self.wake:
                while not self.jobs:
                    self.wake.wait()
                job = min(
                    self.jobs.values(), key=lambda j: (j.id not in self.cancelled, j.priority)
                )
            done = self.fault(job)
            if job.id in self.cancelled:
                done = Done(DoneKind.CANCELLED)
            elif done is None:
                time.sleep(job.prompt[0] / 1000)
                self.steps[job.id] = self.steps.get(job.id, 0) + 1
                if self.steps[job.id] >= job.max_steps:
                    done = Done(DoneKind.MAX_STEPS)
            ids = [[token + 1 for token in job.canvas]]
            if done is not None:
                with self.wake:
                    del self.jobs[job.id]
            cached = len(job.prompt) // 2
            step = self.steps.get(job.id, 0)
            self.outbox.put_frame(
                Frame(job=job.id, step=step, ids=ids, cached_tokens=cached, done=done)
            )

    def fault(self, job: CanvasJob) -> Done | None:
        match job.prompt[0]:
            case 9_001:
                sys.stderr.write("told to die\n")
                sys.stderr.flush()
                os_exit(7)
            case 9_002:
                write(HEADER.pack(5) + b"\xc1nois")
                time.sleep(60)
            case 9_003:
                write(HEADER.pack(500) + b"half")
                os_exit(0)
            case 9_004:
                return Done(DoneKind.ERROR, "The engine ran out of memory; use fewer candidates.")
            case _:
                pass
        return None


def write(raw: bytes) -> None:
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def os_exit(code: int) -> None:
    import os

    os._exit(code)


def main() -> None:
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
    outbox = Outbox()
    scripted = Scripted(outbox)

    def pen() -> None:
        while (message := outbox.take()) is not None:
            write(pack(message))

    threading.Thread(target=pen, daemon=True).start()
    threading.Thread(target=scripted.work, daemon=True).start()
    outbox.put(Ready(INFO, PROTOCOL, 0.1))
    while (body := read_body(sys.stdin.buffer)) is not None:
        match unpack_request(body):
            case Submit(job):
                with scripted.wake:
                    scripted.jobs[job.id] = job
                    scripted.wake.notify()
            case Cancel(job_id):
                with scripted.wake:
                    if job_id in scripted.jobs:
                        scripted.cancelled.add(job_id)
            case Ping(count):
                outbox.put(Pong(count, len(scripted.jobs)))
            case Close():
                break
    os_exit(0)


if __name__ == "__main__":
    main()
