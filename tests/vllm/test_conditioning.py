"""What the last step says is mixed into the rows that denoise as upstream's module does it."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import pytest
import torch

gemma = pytest.importorskip("vllm.model_executor.models.diffusion_gemma")

from dg_engine.vllm_plugin.conditioning import Conditioning  # noqa: E402 - vLLM comes first
from dg_engine.vllm_plugin.states import CanvasStates, Phase, Whole  # noqa: E402
from vllm.config import VllmConfig, set_current_vllm_config  # noqa: E402

SLOTS, LENGTH, HIDDEN, INNER = 3, 6, 16, 24


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def conditioning(request: pytest.FixtureRequest) -> Conditioning:
    """Over random weights and soft embeddings; slot 1 denoises, the others do not."""
    torch.manual_seed(1)
    with set_current_vllm_config(VllmConfig()):
        module = gemma.DiffusionGemmaSelfConditioning(HIDDEN, INNER).to(request.param)
    torch.nn.init.normal_(module.pre_norm.weight)
    states = CanvasStates(
        SLOTS, LENGTH, HIDDEN, vocab_size=50, device=torch.device("cpu"), dtype=request.param
    )
    states.conditioning.normal_()
    states.whole[:, Whole.PHASE] = torch.tensor([Phase.COMMIT, Phase.DENOISE, Phase.GREEDY])
    return Conditioning(states, module)


ROWS, OWNERS, PLACES = (
    torch.tensor(given) for given in ([8, 3, 4, 5, 0], [0, 1, 1, 1, 2], [2, 0, 1, 2, 0])
)


@torch.inference_mode()
def test_rows_that_denoise_are_mixed_and_no_others(conditioning: Conditioning):
    embeds = torch.randn(9, HIDDEN).to(conditioning._states.conditioning.dtype)
    given = embeds.clone()
    conditioning(embeds, ROWS, OWNERS, PLACES)
    soft = conditioning._states.conditioning[1, :3]
    expected = conditioning._module(given[3:6], soft)
    torch.testing.assert_close(embeds[3:6], expected)
    assert not torch.equal(embeds[3:6], given[3:6])
    others = [row for row in range(9) if row not in (3, 4, 5)]
    assert torch.equal(embeds[others], given[others])
