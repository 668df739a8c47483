"""Our attention backend computes what it is asked for, and leaves splits to who joins them."""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

pytest.importorskip("vllm.v1.attention.backends.triton_attn")

from dg_engine.vllm_plugin import canvas_attention as backend

TOKENS, HEADS, HEAD = 5, 4, 8


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which of the kernel's entries were called, in place of the kernel."""
    seen: list[str] = []

    def attend(*_: Any, **mask: Any) -> str:
        assert mask == {"scale": 0.5, "window": 7, "rule": "symmetric", "leading": None}
        seen.append("attend")
        return "parts"

    def whole(*_: Any, out: torch.Tensor, **__: Any) -> None:
        seen.append("whole")
        out.fill_(3)

    monkeypatch.setattr(backend, "attend", attend)
    monkeypatch.setattr(backend, "canvas_attention", whole)
    monkeypatch.setattr(backend, "_in_parts", {})
    return seen


def forward(layer: str, output: torch.Tensor) -> None:
    """A forward of TOKENS tokens over pages of nothing."""
    implementation: Any = SimpleNamespace(head_size=HEAD, scale=0.5, _window=7, _rule="symmetric")
    metadata = SimpleNamespace(
        mm_prefix_range=None, num_actual_tokens=TOKENS, causal=False,
        seq_lens=torch.tensor([TOKENS]), block_table=None, query_start_loc=None, max_seq_len=TOKENS,
    )  # fmt: skip
    pages = torch.zeros(1, 2, 32, 2 * HEAD)
    query = torch.zeros(len(output), HEADS, HEAD)
    backend.CanvasAttention.forward(
        implementation, SimpleNamespace(layer_name=layer), query, query, query, pages, metadata,
        output,
    )  # fmt: skip


def test_a_layer_whose_reader_joins_leaves_its_parts_once(asked: list[str]):
    backend.leave_in_parts("layers.0")
    output = torch.zeros(TOKENS, HEADS, HEAD)
    forward("layers.0", output)
    assert asked == ["attend"]
    assert backend.take_parts("layers.0") == "parts"
    assert backend.take_parts("layers.0") is None


def test_other_layers_have_their_output_whole(asked: list[str]):
    backend.leave_in_parts("layers.0")
    output = torch.zeros(TOKENS, HEADS, HEAD)
    forward("layers.1", output)
    assert asked == ["whole"]
    assert (output == 3).all()
    assert backend.take_parts("layers.1") is None


def test_rows_behind_the_last_token_have_the_output_whole(asked: list[str]):
    """Parts would have fewer rows than what they are multiplied into."""
    backend.leave_in_parts("layers.0")
    output = torch.zeros(TOKENS + 3, HEADS, HEAD)
    forward("layers.0", output)
    assert asked == ["whole"]
    assert (output[:TOKENS] == 3).all()
    assert not output[TOKENS:].any()
    assert backend.take_parts("layers.0") is None
