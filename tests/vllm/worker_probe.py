"""What a test asks a vLLM worker; mixed into its class by `worker_extension_cls`."""

from __future__ import annotations

from typing import Any


class WorkerProbe:
    """Methods for AsyncLLM.collective_rpc."""

    model_runner: Any

    def slots_in_use(self) -> tuple[int, int, int]:
        """Slots of vLLM's runner, of our state, and of our state's tensors."""
        state = self.model_runner.model_state
        widths = state.states.whole.sum(-1)
        return (
            self.model_runner.req_states.num_reqs,
            len(state._slots),
            int((widths != 0).sum()),
        )
