"""The engine process: `python -m dg_engine.child --model FOLDER`, spoken to over its pipes.

It ends when its parent does, however that dies: standard input reaching its end stops it, and on
Linux the kernel is asked for a signal as well, should another process have inherited the pipe.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from dg_engine import turns
from dg_engine.choice import EngineChoice, EngineKind
from dg_engine.engine import EngineDown, EngineError
from dg_engine.job import CanvasJob, EngineInfo, Frame
from dg_engine.outbox import Outbox
from dg_engine.wire import (
    PROTOCOL,
    Cancel,
    Close,
    Failed,
    Ping,
    Pong,
    Ready,
    Submit,
    WireError,
    pack,
    read_body,
    unpack_request,
)

MAX_TOKENS = 8192
"""Of one request to vLLM: far above what a prompt of ours holds, and far below what would need
more cache than there is."""
PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the Linux kernel to kill this process when its parent thread ends; no-op elsewhere."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:  # it died before we asked
        os._exit(1)


def write_all(outbox: Outbox, stream: BinaryIO) -> None:
    """Write messages until the outbox closes or nobody reads any more."""
    while (message := outbox.take()) is not None:
        try:
            stream.write(pack(message))
            stream.flush()
        except (OSError, ValueError):
            os._exit(0)


class Asked(NamedTuple):
    """What the command line asks for."""

    model: Path
    threads: int | None = None
    dtype: str | None = None
    """None for what suits the machine."""
    choice: EngineChoice = EngineChoice()


class Worker(Protocol):
    """What runs the jobs in the main thread; see dg_engine.torch_engine.Worker."""

    @property
    def info(self) -> EngineInfo: ...
    @property
    def jobs(self) -> int: ...
    def submit(self, job: CanvasJob, deliver: Callable[[Frame], None]) -> None: ...
    def cancel(self, job_id: str) -> None: ...
    def work(self) -> None: ...


def load_worker(asked: Asked) -> Worker:
    """Load what is asked for; raises EngineError with one sentence when that cannot be."""
    # Heavy imports only here: a wrong model folder is reported before they are paid for.
    from dg_engine.model_config import read_config

    kind = asked.choice.kind
    config = read_config(asked.model, any_weights=kind is not EngineKind.TORCH)
    asked.choice.check()
    if kind is EngineKind.TORCH:
        return torch_worker(asked)
    from dg_engine.loop_worker import LoopWorker

    if kind is EngineKind.REMOTE:
        try:
            from dg_engine.remote_engine import RemoteEngine, RemoteOptions
        except ImportError as error:
            raise EngineError(
                f"The remote engine needs {error.name}; install dg-lsp[remote]."
            ) from error
        file = asked.choice.key_file
        options = RemoteOptions(Path(file).expanduser() if file else None)
        return LoopWorker(RemoteEngine.connect(asked.choice.url or "", asked.model, options))
    from dg_engine.process_group import end_group_with_process
    from dg_engine.vllm_engine import VllmEngine, VllmOptions

    end_group_with_process()
    wanted = VllmOptions(
        dtype=asked.dtype or "auto", max_model_len=min(config.max_positions, MAX_TOKENS)
    )
    return LoopWorker(VllmEngine.start(asked.model, wanted))


def torch_worker(asked: Asked) -> Worker:
    """See dg_engine.torch_engine."""
    # PyTorch's kernels for a processor are kept by shape, and prompts have many lengths: a
    # thousand of them, as it keeps by itself, take 300 MiB more and save no time.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    import torch

    from dg_engine.loader import load
    from dg_engine.torch_engine import Worker

    if asked.threads:
        torch.set_num_threads(asked.threads)
    return Worker(load(asked.model, dtype=getattr(torch, asked.dtype) if asked.dtype else None))


def serve(asked: Asked, reader: BinaryIO, writer: BinaryIO) -> int:
    """Load the model, then run what is asked for until the input ends. Returns an exit code."""
    began = time.monotonic()
    if asked.choice.kind is EngineKind.TORCH:
        turns.compute_in_turn()  # threads do as the one that starts them, so before any
    outbox = Outbox()
    pen = threading.Thread(target=write_all, args=(outbox, writer), name="dg-writer", daemon=True)
    pen.start()
    try:
        worker = load_worker(asked)
    except EngineDown as error:
        # The last line is what the server shows; it starts this process again after a pause.
        print(error, file=sys.stderr, flush=True)
        return 4
    except EngineError as error:
        outbox.put(Failed(str(error)))
        outbox.close()
        pen.join()
        return 3
    outbox.put(Ready(worker.info, PROTOCOL, time.monotonic() - began))

    def read() -> None:
        turns.answer_at_once()
        try:
            answer_requests(worker, reader, outbox)
        except WireError as error:
            print(f"the server speaks another language: {error}", file=sys.stderr, flush=True)
        finally:
            # The parent is gone or asked us to end: no step that still runs is worth waiting for.
            os._exit(0)

    threading.Thread(target=read, name="dg-reader", daemon=True).start()
    worker.work()  # here, where the model was loaded; see Worker
    return 0


def answer_requests(worker: Worker, reader: BinaryIO, outbox: Outbox) -> None:
    """Hand requests to the worker until the input ends or says Close."""
    while (body := read_body(reader)) is not None:
        try:
            request = unpack_request(body)
        except WireError as error:
            print(f"dropped a message: {error}", file=sys.stderr, flush=True)
            continue
        match request:
            case Submit(job):
                worker.submit(job, outbox.put_frame)
            case Cancel(job):
                worker.cancel(job)
            case Ping(count):
                outbox.put(Pong(count, worker.jobs))
            case Close():
                return


def main() -> None:
    """Entry point of the process."""
    parser = argparse.ArgumentParser(prog="dg_engine.child", description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default=None)
    parser.add_argument("--parent", type=int, default=0, help="process id that must stay alive")
    parser.add_argument("--engine", choices=[str(k) for k in EngineKind], default="torch")
    parser.add_argument("--url", help="address of the server, for --engine remote")
    parser.add_argument("--key-file", help="file with the server's key")
    options = parser.parse_args()
    die_with_parent(options.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the parent's business
    frames = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a stray print must not break the frames
    choice = EngineChoice(EngineKind(options.engine), options.url, options.key_file)
    asked = Asked(options.model, options.threads, options.dtype, choice)
    code = serve(asked, sys.stdin.buffer, frames)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
