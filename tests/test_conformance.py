"""Our sampler on our forward repeats transformers' own generate, draw by draw."""

from __future__ import annotations

import pytest
import torch
from dg_engine import solver as solver_module
from dg_engine.job import DoneKind, Role, Rule
from dg_engine.sampler import denoise_step
from transformers import DiffusionGemmaForBlockDiffusion
from transformers.models.diffusion_gemma import generation_diffusion_gemma as upstream

from tests.engine_fixtures import job, load_tiny, solve, tiny_checkpoint

STEPS = 10


class Recording:
    """What transformers drew and found: injected into ours, then compared."""

    def __init__(self) -> None:
        self.noise: list[torch.Tensor] = []
        self.candidates: list[torch.Tensor] = []
        self.logits: list[torch.Tensor] = []
        self.entropies: list[torch.Tensor] = []
        self.accepted: list[torch.Tensor] = []
        self.drafts: list[torch.Tensor] = []


class Replayed:
    """Draws that repeat a recording."""

    def __init__(self, recording: Recording) -> None:
        self._noise = iter(recording.noise)
        self._candidates = iter(recording.candidates)

    def noise(self, rows: int, canvas: int) -> torch.Tensor:
        return next(self._noise)

    def candidates(self, logits: torch.Tensor) -> torch.Tensor:
        return next(self._candidates)


def record(
    prompt: list[int], seed: int, entropy_bound: float, confidence: float, stability: int
) -> Recording:
    """Run transformers' generate for one block and keep every draw and decision."""
    model = DiffusionGemmaForBlockDiffusion.from_pretrained(tiny_checkpoint()).eval()
    recording = Recording()
    patch = pytest.MonkeyPatch()
    multinomial = torch.multinomial
    initialize = upstream.EntropyBoundSampler.initialize_canvas
    accept = upstream.EntropyBoundSampler.accept_canvas

    def drawn(probabilities, num_samples):
        found = multinomial(probabilities, num_samples)
        recording.candidates.append(found.view(1, -1).clone())
        return found

    def noise(self, batch_size, device):
        found = initialize(self, batch_size, device)
        recording.noise.append(found.clone())
        return found

    def accepted(self, current, denoiser, logits, step):
        out = accept(self, current, denoiser, logits, step)
        recording.logits.append(logits.clone())
        recording.entropies.append(torch.distributions.Categorical(logits=logits).entropy())
        recording.accepted.append(self.accepted_token_mask.clone())
        return out

    class Drafts:
        def put(self, value): ...
        def put_draft(self, value):
            recording.drafts.append(value.clone())

        def end(self): ...

    patch.setattr(torch, "multinomial", drawn)
    patch.setattr(upstream.EntropyBoundSampler, "initialize_canvas", noise)
    patch.setattr(upstream.EntropyBoundSampler, "accept_canvas", accepted)
    torch.manual_seed(seed)
    try:
        model.generate(
            torch.tensor([prompt]),
            streamer=Drafts(),
            max_new_tokens=16,
            max_denoising_steps=STEPS,
            confidence_threshold=confidence,
            stability_threshold=stability,
            sampler_config=upstream.EntropyBoundSamplerConfig(entropy_bound=entropy_bound),
        )
    finally:
        patch.undo()
    return recording


@pytest.mark.parametrize(
    ("seed", "length", "entropy_bound", "confidence", "stability", "early"),
    [
        (0, 10, 0.1, 0.005, 1, False),
        (1, 40, 2.0, 0.005, 1, False),
        (2, 33, 5.0, 1.4, 0, True),
        (3, 17, 8.0, 1.5, 0, True),
        (4, 50, 0.1, 9.0, 0, True),
    ],
)
def test_every_step_equals_transformers_generate(
    seed: int,
    length: int,
    entropy_bound: float,
    confidence: float,
    stability: int,
    early: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    prompt = torch.randint(7, 263, (length,), generator=torch.Generator().manual_seed(seed))
    recording = record(prompt.tolist(), seed, entropy_bound, confidence, stability)
    loaded = load_tiny()
    loaded.solver._draws = lambda _: Replayed(recording)
    found = []

    def watched(*arguments, **options):
        step = denoise_step(*arguments, **options)
        found.append(step)
        return step

    monkeypatch.setattr(solver_module, "denoise_step", watched)
    frames = solve(
        loaded,
        job(
            prompt=prompt.tolist(),
            canvas=[0] * 16,
            roles=bytes([Role.HOLE] * 16),
            rule=Rule.ENTROPY_BOUND,
            max_steps=STEPS,
            entropy_bound=entropy_bound,
            confidence=confidence,
            stability=stability,
            text_only=False,
        ),
    )
    assert len(found) == len(recording.drafts), "the stopping step differs"
    for ours, logits, entropies, accepted, draft in zip(
        found,
        recording.logits,
        recording.entropies,
        recording.accepted,
        recording.drafts,
        strict=True,
    ):
        torch.testing.assert_close(ours.processed, logits, atol=1e-3, rtol=1e-4)
        torch.testing.assert_close(ours.entropy, entropies, atol=1e-3, rtol=1e-3)
        assert torch.equal(ours.accepted, accepted)
        assert torch.equal(ours.state.argmax, draft)
    assert frames[-1].ids == recording.drafts[-1].tolist()
    assert (len(found) < STEPS) is early
    assert frames[-1].done.kind is (DoneKind.CONVERGED if early else DoneKind.MAX_STEPS)


def test_the_reference_engine_and_the_compact_one_give_the_same_answers():
    compact, reference = load_tiny(), load_tiny(reference=True)
    for fields in (
        {"rule": Rule.ENTROPY_BOUND, "max_steps": 6},
        {"widths": [1, 3, 6], "causal_candidate": True, "max_steps": 2, "alternatives": 3},
        {"canvas": [5] * 16, "roles": bytes([1] * 16), "keep_seed_steps": 2},
    ):
        answers = [solve(engine, job(**fields))[-1] for engine in (compact, reference)]
        assert answers[0].ids == answers[1].ids
        torch.testing.assert_close(
            torch.tensor(answers[0].scores), torch.tensor(answers[1].scores), atol=1e-3, rtol=1e-3
        )
