"""When vLLM's core does what for a job: methods of its process, wrapped while a job runs.

On one GPU the core, its scheduler and the worker share a process and a thread, so a worker's
extension can reach them all. Times are those of time.monotonic, which processes of a machine share.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Iterator
from typing import Any

Event = tuple[str, float, float]
"""What, begun and ended, seconds."""
PARTS = (
    ("input", "core", "preprocess_add_request"),
    ("add", "scheduler", "add_request"),
    ("schedule", "scheduler", "schedule"),
    ("execute", "model_executor", "execute_model"),
    ("sample", "model_executor", "sample_tokens"),
    ("update", "scheduler", "update_from_output"),
)
"""Name, owner and method."""


def core_of_this_process() -> Any:
    """vLLM's core, None in a process without one."""
    # vLLM has moved what lives long out of the collector's sight.
    gc.unfreeze()
    # A worker of several may have one that was never finished, left over from its start.
    found = [
        one
        for one in gc.get_objects()
        if type(one).__name__ == "EngineCoreProc" and hasattr(one, "scheduler")
    ]
    gc.freeze()
    return found[0] if found else None


class Timeline:
    """Wraps the methods of a running core."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._stack = contextlib.ExitStack()

    def begin(self) -> int:
        """Wrap what is found; returns how many methods."""
        core, count = core_of_this_process(), 0
        if core is None:
            return 0
        owners = {
            "core": core, "scheduler": core.scheduler, "model_executor": core.model_executor
        }  # fmt: skip
        for name, owner, method in PARTS:
            if hasattr(owners[owner], method):
                self._stack.enter_context(self._wrapped(name, owners[owner], method))
                count += 1
        return count

    def end(self) -> list[Event]:
        """Take the wraps off; returns what happened."""
        self._stack.close()
        return self.events

    @contextlib.contextmanager
    def _wrapped(self, name: str, owner: Any, method: str) -> Iterator[None]:
        plain = getattr(owner, method)

        def timed(*args: Any, **options: Any) -> Any:
            begun = time.monotonic()
            try:
                return plain(*args, **options)
            finally:
                self.events.append((name, begun, time.monotonic()))

        setattr(owner, method, timed)
        try:
            yield
        finally:
            delattr(owner, method)


def told(events: list[Event], jobs: list[tuple[float, list[float]]]) -> list[str]:
    """Lines of a table: what happened in a job, medians of when it began and how long it took.

    `jobs` are the times at which a job was submitted and its frames came. Milliseconds from the
    submission; jobs in which something else happened than in most are left out.
    """
    found: list[list[tuple[str, float, float]]] = []
    for submitted, frames in jobs:
        mine = [
            (name, 1000 * (begun - submitted), 1000 * (ended - begun))
            for name, begun, ended in sorted(events, key=lambda event: event[1])
            if submitted <= begun <= frames[-1]
        ]
        mine += [("frame", 1000 * (at - submitted), 0.0) for at in frames]
        found.append(sorted(mine, key=lambda one: one[1]))
    shapes = [tuple(name for name, _, _ in job) for job in found]
    usual = statistics.mode(shapes)
    alike = [job for job, shape in zip(found, shapes, strict=True) if shape == usual]
    lines = [f"    a line by the host, {len(alike)} of {len(jobs)} alike: ms since it was asked"]
    for place, name in enumerate(usual):
        at = statistics.median(job[place][1] for job in alike)
        took = statistics.median(job[place][2] for job in alike)
        lines.append(f"      {at:6.2f} {name}" + (f" for {took:.2f}" if took else ""))
    return lines
