"""What a denoise step is told of the one before: all tokens or the likeliest, pins or nothing."""

from __future__ import annotations

import math

import pytest
import torch
from dg_engine.job import CanvasJob, MaskRule
from dg_engine.loader import Loaded
from dg_engine.prefix_cache import PrefixCache
from dg_engine.solver import Conditioning, PinConditioning
from dg_kernels import reference

from tests.engine_fixtures import job, load_tiny, solve

VOCABULARY = 300


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load_tiny()


def states(
    conditioning: Conditioning | None = None, **fields: object
) -> list[tuple[list[list[int]], list[float]]]:
    """Drafts and entropies of four steps of a fresh engine, which has no prompt cached."""
    engine = load_tiny() if conditioning is None else load_tiny(conditioning=conditioning)
    return [(f.ids, f.entropy) for f in solve(engine, job(max_steps=4, **fields))]


def test_an_engine_conditions_on_every_token_and_on_the_pins_own(loaded: Loaded) -> None:
    assert loaded.solver.conditioning == Conditioning(0, PinConditioning.ONE_HOT)


@pytest.mark.parametrize("k", [VOCABULARY, VOCABULARY + 1])
@pytest.mark.parametrize("fields", [{}, {"widths": [1, 3, 6]}])
def test_the_whole_vocabulary_is_the_full_sum(k: int, fields: dict[str, object]) -> None:
    assert states(Conditioning(top_k=k), **fields) == states(**fields)


def test_few_tokens_tell_something_else_after_the_first_step_only() -> None:
    few, every = states(Conditioning(top_k=1)), states()
    assert few[0] == every[0]
    assert few[1] != every[1]


@pytest.mark.parametrize("k", [1, 4, 64])
def test_the_likeliest_tokens_are_mixed_as_in_the_kernels_reference(loaded: Loaded, k: int) -> None:
    model = loaded.solver.model
    processed = 6 * torch.randn(2, 5, VOCABULARY)
    processed[..., 7:20] = -math.inf  # banned
    with torch.inference_mode():
        table = model.embed(torch.arange(VOCABULARY))
        top = processed.flatten(0, 1).topk(k, -1)
        expected = reference.soft_embedding(top.values, top.indices, table, scale=1.0)
        found = Conditioning(top_k=k).of_free(model, processed)
    torch.testing.assert_close(found.flatten(0, 1), expected, atol=1e-4, rtol=1e-4)


def test_where_fewer_tokens_are_allowed_than_kept_those_are_mixed(loaded: Loaded) -> None:
    model = loaded.solver.model
    processed = torch.full((1, 1, VOCABULARY), -math.inf)
    processed[..., [30, 40]] = torch.tensor([0.0, 1.0])
    with torch.inference_mode():
        found = Conditioning(top_k=16).of_free(model, processed)
        torch.testing.assert_close(found, model.soft_embedding(processed))
    assert bool(found.isfinite().all())


def test_pins_tell_their_token_or_nothing(loaded: Loaded) -> None:
    model, given = loaded.solver.model, torch.tensor([[60, 61, 62]])
    with torch.inference_mode():
        one_hot = torch.nn.functional.one_hot(given, VOCABULARY).float().log()
        torch.testing.assert_close(
            Conditioning().of_pins(model, given), model.soft_embedding(one_hot)
        )
    assert not Conditioning(pins=PinConditioning.ZERO).of_pins(model, given).any()
    zero, one = states(Conditioning(pins=PinConditioning.ZERO)), states()
    assert zero[0] == one[0]
    assert zero[1] != one[1]


def test_engines_that_share_a_cache_answer_as_each_alone(loaded: Loaded) -> None:
    cache = PrefixCache(2**26)
    asked: CanvasJob = job(max_steps=4)
    alone = load_tiny(mask_rule=MaskRule.SYMMETRIC)
    anchored, symmetric = (
        load_tiny(cache=cache),
        load_tiny(cache=cache, mask_rule=MaskRule.SYMMETRIC),
    )
    expected = [solve(loaded, asked)[-1].ids, solve(alone, asked)[-1].ids]
    found = [solve(engine, asked)[-1] for engine in (anchored, symmetric)]
    assert [frame.ids for frame in found] == expected
    assert found[1].cached_tokens == len(asked.prompt) - 1
