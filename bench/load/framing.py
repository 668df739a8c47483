"""Bytes that are nearly messages, in both framings: `python -m bench.load.framing`.

Each input is a valid stream that was cut, flipped, spliced or given another length. What reads it
must end with messages or with the error that it documents, and soon: nothing else may be raised,
and what was taken for a message must be one that can be written again.
"""

from __future__ import annotations

import argparse
import logging
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from dg_engine.daemon.messages import (
    Ask,
    DaemonStatus,
    Focus,
    Hello,
    Quit,
    Refused,
    Welcome,
    unpack_answer,
    unpack_from_window,
)
from dg_engine.engine import EngineState, EngineStatus
from dg_engine.job import CanvasJob, Done, DoneKind, EngineInfo, Frame, JobError, check_job
from dg_engine.wire import (
    HEADER,
    Cancel,
    Changed,
    Close,
    Failed,
    Ping,
    Pong,
    Progress,
    Ready,
    Submit,
    WireError,
    body_length,
    framed,
    unpack_reply,
    unpack_request,
)
from dg_lsp.transport import messages

RESULT = Path(__file__).resolve().parent.parent / "results/framing.md"
LONGEST_SECONDS = 0.5
"""Of one input; a reader that takes longer hangs."""
CANVAS = 256
VOCABULARY = 1_000

_JOB = CanvasJob(
    id="job", prompt=[1, 2, 300], canvas=[0] * 8 + [7] * 8, roles=bytes([0] * 8 + [2] * 8)
)
_FRAME = Frame(
    job="job", step=2, ids=[[1, 2, 3]], settled=[2], entropy=[0.5], ms={"queue": 1.0},
    done=Done(DoneKind.CONVERGED),
)  # fmt: skip
_INFO = EngineInfo("model", 256, 1_000, "0" * 64, "cpu", "float32", 1, True)
_STATUS = EngineStatus(EngineState.RESTARTING, "It stopped. It starts again in 1 s.", 1.0)
_SENT: tuple[msgspec.Struct, ...] = (
    *(Submit(_JOB), Cancel("job"), Close(), Ping(3), Pong(3, 1), Progress(_FRAME)),
    *(Ready(_INFO, 1, 2.5), Failed("No model."), Changed(_STATUS), Ask(), Quit()),
    *(Hello(1, "1.0", 7, "Neovim", "/models/dg-tiny", 2), Welcome(1, "1.0", 8)),
    *(Refused("Too old.", False), Focus(True), DaemonStatus("1", 1, 2.0, None, [])),
)
_BODIES = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
    b'{"jsonrpc":"2.0","method":"exit"}',
    '{"jsonrpc":"2.0","id":"é😀","result":null}'.encode(),
)
_TOKENS = (
    *(
        b"\xc1",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\x00\x00\x00\x01",
        b"\x91" * 300,
        b"\xd9\x02\xff\xfe",
    ),
    *(b"\xc0", b"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", b"\xff" * 4, b"\x00" * 4),
    *(
        b"\r\n\r\n",
        b"Content-Length: ",
        b"99999999999999",
        b"-1",
        b"\r\n",
        b"content-length:7\r\n\r\n",
    ),
)


class Mutator:
    """Valid bytes, changed in up to four places."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def changed(self, raw: bytes) -> bytes:
        """Some change of these bytes."""
        data = bytearray(raw)
        for _ in range(self.random.randint(0, 4)):
            place = self.random.randint(0, len(data))
            match self.random.randrange(6):
                case 0 if data:
                    data[place % len(data)] ^= 1 << self.random.randrange(8)
                case 1:
                    del data[place:]
                case 2:
                    data[place:place] = self.random.choice(_TOKENS)
                case 3:
                    data[place:place] = self.random.randbytes(self.random.randint(1, 9))
                case 4:
                    del data[place : place + self.random.randint(1, 9)]
                case _:
                    data += data[place : place + 40]
        return bytes(data)

    def engine_input(self) -> bytes:
        """A frame of the engine's framing, or nearly."""
        raw = framed(self.random.choice(_SENT))
        if self.random.random() < 0.5:
            body = self.changed(raw[HEADER.size :])
            return HEADER.pack(len(body)) + body  # the length is right, the body is not
        return self.changed(raw)

    def lsp_input(self) -> bytes:
        """A stream of the LSP framing, or nearly."""
        bodies = self.random.choices(_BODIES, k=self.random.randint(1, 3))
        return self.changed(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(b), b) for b in bodies))


def read_engine(raw: bytes) -> str:
    """What becomes of a frame in the child, the daemon and the window; "message" or "refused"."""
    if len(raw) < HEADER.size:
        return "refused"
    outcome = "refused"
    for unpack in (unpack_request, unpack_reply, unpack_from_window, unpack_answer):
        try:
            body = raw[HEADER.size : HEADER.size + body_length(raw[: HEADER.size])]
            message = unpack(body)
        except WireError:
            continue
        framed(message)
        outcome = "message"
        if isinstance(message, Submit):
            try:
                check_job(message.job, canvas_length=CANVAS, vocab_size=VOCABULARY)
            except JobError:
                outcome = "refused job"
    return outcome


def read_lsp(raw: bytes) -> str:
    """What becomes of a stream in the server's reader, fed in pieces."""
    pieces = iter([raw[i : i + 16] for i in range(0, len(raw), 16)])
    found = list(messages(lambda size: next(pieces, b"")))
    return f"{min(len(found), 4)} messages"


def run(count: int, seed: int) -> tuple[Counter[str], float, list[str]]:
    """Read so many inputs; outcomes, the slowest input's seconds, and what went wrong."""
    logging.getLogger("dg_lsp.transport").setLevel(logging.ERROR)  # it tells of each bad header
    mutator = Mutator(seed)
    kinds: Sequence[tuple[str, Callable[[], bytes], Callable[[bytes], str]]] = (
        ("engine", mutator.engine_input, read_engine),
        ("LSP", mutator.lsp_input, read_lsp),
    )
    outcomes: Counter[str] = Counter()
    slowest, faults = 0.0, []
    for number in range(count):
        name, make, read = kinds[number % 2]
        raw = make()
        began = time.perf_counter()
        try:
            outcomes[f"{name}: {read(raw)}"] += 1
        except Exception as error:
            faults.append(f"{name} {raw[:200]!r}: {type(error).__name__}: {error}")
        took = time.perf_counter() - began
        slowest = max(slowest, took)
        if took > LONGEST_SECONDS:
            faults.append(f"{name} {raw[:200]!r}: {took:.1f} s")
    return outcomes, slowest, faults


def main() -> int:
    """Read two million inputs, half of each framing, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    began = time.perf_counter()
    outcomes, slowest, faults = run(options.count, options.seed)
    seconds = time.perf_counter() - began
    rows = "".join(f"| {name} | {count:,} |\n" for name, count in sorted(outcomes.items()))
    options.out.write_text(
        "# Nearly messages\n\n"
        f"`python -m bench.load.framing --count {options.count} --seed {options.seed}`, "
        f"{platform.machine()}, Python {platform.python_version()}: {options.count:,} inputs in "
        f"{seconds:.0f} s, {len(faults)} faults, the slowest input {slowest * 1000:.1f} ms.\n\n"
        f"| outcome | inputs |\n|---|---|\n{rows}",
        "utf-8",
    )
    for fault in faults[:20]:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
