"""The compact forward gives transformers' hidden states and logits, in every shape it carries."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from dg_engine.compact import CompactModel
from dg_engine.job import MaskRule
from dg_engine.model_config import read_config
from transformers import DynamicCache

from tests.checkpoints import write_checkpoint

SHAPES = {
    "one expert, equal heads": {"global_head_dim": 16, "num_global_key_value_heads": 2},
    "one expert, wide full heads": {},
    "four experts, two active": {"num_experts": 4, "top_k_experts": 2},
    "eight experts, three active": {"num_experts": 8, "top_k_experts": 3},
    "narrow window": {"sliding_window": 12},
    "window of one block": {"sliding_window": 5, "num_experts": 4, "top_k_experts": 2},
    "only full layers": {"layer_types": ["full_attention"] * 4},
    "one query head per key head": {"num_key_value_heads": 4},
}


@pytest.fixture(params=list(SHAPES), ids=lambda name: name.replace(" ", "_"))
def pair(request: pytest.FixtureRequest, tmp_path: Path):
    reference = write_checkpoint(tmp_path, **SHAPES[request.param])
    compact = CompactModel(
        tmp_path, read_config(tmp_path), device=torch.device("cpu"), dtype=torch.float32
    )
    return reference, compact


def reference_cache(reference, prompt):
    cache = DynamicCache(config=reference.config.get_text_config(decoder=True))
    hidden = reference.model.encoder(input_ids=prompt[None], past_key_values=cache)
    return hidden.last_hidden_state[0], cache


@torch.no_grad()
def test_encoder_hidden_states_equal_the_reference(pair):
    reference, compact = pair
    prompt = torch.randint(7, 263, (37,))
    expected, _ = reference_cache(reference, prompt)
    hidden, _ = compact.encode(prompt, None)
    logits = compact.logits(hidden)
    torch.testing.assert_close(
        logits, 30 * torch.tanh(reference.lm_head(expected) / 30), atol=2e-4, rtol=1e-4
    )


@torch.no_grad()
@pytest.mark.parametrize("steps", [1, 3])
def test_canvas_logits_equal_the_reference_over_self_conditioned_steps(pair, steps):
    reference, compact = pair
    prompt = torch.randint(7, 263, (37,))
    _, cache = reference_cache(reference, prompt)
    _, past = compact.encode(prompt, None)
    ids = torch.randint(0, 300, (1, 16))
    processed = None
    for _ in range(steps):
        expected = reference(
            decoder_input_ids=ids,
            past_key_values=cache,
            self_conditioning_logits=processed,
            input_ids=None,
        ).logits
        conditioning = None if processed is None else compact.soft_embedding(processed)
        found = compact.logits(compact.decode(ids, conditioning, past, None))
        torch.testing.assert_close(found, expected, atol=3e-4, rtol=1e-4)
        processed = expected / 0.7


@torch.no_grad()
def test_a_prompt_read_in_pieces_from_a_cropped_cache_gives_the_same_states(pair):
    _, compact = pair
    prompt = torch.randint(7, 263, (41,))
    whole, past = compact.encode(prompt, None)
    _, other = compact.encode(torch.cat((prompt[:20], torch.randint(7, 263, (9,)))), None)
    rest, pieced = compact.encode(prompt[20:], other.crop(20))
    torch.testing.assert_close(rest, whole[20:], atol=1e-4, rtol=1e-4)
    for one, two in zip(past.keys, pieced.keys, strict=True):
        torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_rows_of_a_batch_do_not_see_each_other_nor_padding(pair):
    _, compact = pair
    prompt = torch.randint(7, 263, (30,))
    _, past = compact.encode(prompt, None)
    long, short = torch.randint(0, 300, (16,)), torch.randint(0, 300, (9,))
    alone_long = compact.decode(long[None], None, past, None)[0]
    alone_short = compact.decode(short[None], None, past, None)[0]
    padded = torch.cat((short, torch.randint(0, 300, (7,))))
    both = compact.decode(torch.stack((long, padded)), None, past, torch.tensor([16, 9]))
    torch.testing.assert_close(both[0], alone_long, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(both[1, :9], alone_short, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_continuations_in_rows_equal_each_read_alone(pair):
    _, compact = pair
    prompt = torch.randint(7, 263, (30,))
    _, past = compact.encode(prompt, None)
    rows = torch.randint(0, 300, (3, 11))
    together = compact.encode_rows(rows, past)
    for row, found in zip(rows, together, strict=True):
        alone, _ = compact.encode(row, past)
        torch.testing.assert_close(found, alone, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_mask_rules_differ_only_once_prompt_and_canvas_pass_the_window(tmp_path: Path):
    write_checkpoint(tmp_path, sliding_window=24)
    config = read_config(tmp_path)
    models = [
        CompactModel(tmp_path, config, device=torch.device("cpu"), dtype=torch.float32, mask_rule=r)
        for r in (MaskRule.ANCHORED, MaskRule.SYMMETRIC)
    ]
    ids = torch.randint(0, 300, (1, 16))
    for length, same in ((8, True), (40, False)):
        prompt = torch.randint(7, 263, (length,))
        found = [m.decode(ids, None, m.encode(prompt, None)[1], None) for m in models]
        assert torch.allclose(*found, atol=1e-5) is same


@torch.no_grad()
def test_the_symmetric_rule_is_a_band_around_each_query():
    from dg_engine.attention import decoder_masks

    masks = decoder_masks(MaskRule.SYMMETRIC, 5, 7, 6, None, torch.device("cpu"))
    assert masks.sliding.prompt is not None
    assert masks.sliding.own is not None
    seen = torch.cat((masks.sliding.prompt, masks.sliding.own[0]), 1)
    for row in range(6):
        for key in range(13):
            assert bool(seen[row, key]) is (abs(7 + row - key) < 5)


@torch.no_grad()
def test_the_parameter_count_is_that_of_the_checkpoint(tmp_path: Path):
    reference = write_checkpoint(tmp_path, num_experts=4, top_k_experts=2)
    compact = CompactModel(
        tmp_path, read_config(tmp_path), device=torch.device("cpu"), dtype=torch.float32
    )
    decoder = sum(p.numel() for p in reference.model.decoder.parameters())
    assert compact.parameters == decoder
