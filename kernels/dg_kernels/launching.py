"""Launches that begin while the one before them ends (Hopper and later).

A kernel that is launched so must wait before it reads or writes what another one touches. It lets
the next launch begin in turn, so that all that is saved is the way from one to the next.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import triton
from triton.language.extra import cuda


@triton.jit
def begin_early():
    """At the top of a kernel that was launched early: let the next one come, wait for the last."""
    cuda.gdc_launch_dependents()
    cuda.gdc_wait()


def launched(early: bool) -> dict[str, bool]:
    """Options of a launch whose kernel calls `begin_early`, or does not."""
    return {"launch_pdl": True} if early else {}
