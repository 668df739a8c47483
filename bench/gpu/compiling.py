"""Compiling many kernels in many processes, so that a measurement finds them in Triton's cache."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def in_processes(
    work: Callable[[list[Item]], None], items: Sequence[Item], workers: int
) -> None:  # fmt: skip
    """Run `work` on every n-th item in each of `workers` processes, and wait for them.

    `work` is a function of a module, and what it raises is printed by its process.
    """
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=work, args=(list(items[n::workers]),)) for n in range(workers)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
