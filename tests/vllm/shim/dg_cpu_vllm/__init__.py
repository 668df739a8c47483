"""Loaded by each of vLLM's processes: on a few cores, whoever waits must not spin."""

from __future__ import annotations


def wait_without_spinning() -> None:
    """Let vLLM's processes sleep between messages, for which each spins a second by itself."""
    from vllm.distributed.device_communicators import shm_broadcast

    wait = shm_broadcast.SpinCondition.__init__
    defaults = wait.__defaults__
    if defaults is None or len(defaults) != 1:
        raise RuntimeError("vLLM's SpinCondition has changed; see tests/vllm/shim/dg_cpu_vllm.")
    wait.__defaults__ = (0.0,)
