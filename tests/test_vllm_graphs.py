"""Which graphs are captured, and which a batch takes."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

from dg_engine.vllm_plugin.gpu_defaults import capture_sizes
from dg_engine.vllm_plugin.graphs import MOST_TOKENS, add_lone_requests


@dataclasses.dataclass(frozen=True)
class Described:
    """vLLM's description of a batch, as far as it is read."""

    num_tokens: int
    num_reqs: int | None
    uniform_token_count: int | None = None


def manager() -> SimpleNamespace:
    one, few, many, uniform, piecewise = (
        Described(1, 1), Described(64, 16), Described(2 * MOST_TOKENS, 16), Described(256, 1, 256),
        Described(96, None),
    )  # fmt: skip
    lists = {64: [few], 96: [piecewise], 256: [uniform], 1: [one], 2 * MOST_TOKENS: [many]}
    candidates = {(1, 0): lists[1]} | {(tokens, 0): lists[64] for tokens in range(2, 65)}
    candidates |= {(96, 0): lists[96], (256, 0): lists[256], (1024, 0): lists[2 * MOST_TOKENS]}
    return SimpleNamespace(
        _candidates=candidates,
        _capture_descs={"full": [many, uniform, few, one], "piecewise": [piecewise]},
    )


def test_a_lone_request_has_its_own_graph_and_it_comes_first():
    changed = manager()
    add_lone_requests(changed)
    lone, few = Described(64, 1), Described(64, 16)
    for tokens in range(2, 65):
        assert changed._candidates[tokens, 0] == [lone, few]
    assert changed._candidates[1, 0] == [Described(1, 1)]
    assert changed._candidates[256, 0] == [Described(256, 1, 256)]
    assert changed._candidates[96, 0] == [Described(96, None)]
    assert changed._candidates[1024, 0] == [Described(2 * MOST_TOKENS, 16)]
    assert changed._capture_descs == {
        "full": [
            Described(2 * MOST_TOKENS, 16), Described(256, 1, 256), lone, few, Described(1, 1),
        ],
        "piecewise": [Described(96, None)],
    }  # fmt: skip


def test_what_is_captured_is_what_will_be_asked_for():
    """Otherwise a graph is captured twice, or looked for in vain."""
    changed = manager()
    add_lone_requests(changed)
    captured = [id(one) for found in changed._capture_descs.values() for one in found]
    assert len(captured) == len(set(captured))
    assert {id(one) for found in changed._candidates.values() for one in found} == set(captured)


def test_a_vllm_that_is_built_otherwise_is_left_alone():
    add_lone_requests(SimpleNamespace())


def test_sizes_hold_lines_canvases_and_no_more_than_may_run():
    sizes = capture_sizes(256, 16)
    assert {1, 32, 64, 256, 512, 2048} <= set(sizes)
    assert sizes == sorted(set(sizes))
    assert max(sizes) == 8 * 256
    assert max(capture_sizes(256, 2)) == 512
    assert {288, 320} <= set(capture_sizes(256, 1)), "a canvas with the end of its prompt"
    assert max(capture_sizes(32, 1)) == 32
