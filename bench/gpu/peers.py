"""Attention of a canvas by our kernel and by vLLM's two backends, in one run on this GPU.

    PYTHONPATH=kernels:. python -m bench.gpu.peers --out FILE

Needs vLLM. All get the same batch by the symmetric rule, theirs in pages of vLLM's own choice and
in ours, of which the faster counts, and ours in the layout of our backend; each is compared with
the float32 reference first. Then several canvases and whole prompts at once, full layers alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from dg_kernels import reference
from dg_kernels.canvas_attention import canvas_attention
from torch import Tensor

from bench.gpu.kernels import (
    CANVASES,
    HEADS,
    LAYERS,
    PROMPTS,
    SMALL_PAGES,
    Batch,
    Layer,
    Row,
    batch_of,
    measure_ceilings,
    median_us,
    off_by,
)

SEGMENTS = 16
"""Of vLLM's split softmax."""
BATCHES: dict[str, list[tuple[int, int, bool]]] = {
    "4 canvases behind 4096": [(256, 4352, False)] * 4,
    "8 canvases behind 512": [(256, 768, False)] * 8,
    "a canvas and a line behind 2048": [(256, 2304, False), (32, 2080, False)],
    "512 more of a prompt of 4096": [(512, 4608, True)],
    "a prompt of 2048": [(2048, 2048, True)],
    "a prompt of 8192": [(8192, 8192, True)],
}
"""Larger batches: queries, keys and whether it is causal, of each sequence."""
Attend = Callable[[], Tensor]


def ours(batch: Batch, layer: Layer, scale: float) -> Attend:
    """As our backend calls our kernel, in its own layout."""
    out, mine = torch.empty_like(batch.query), beside(batch)
    return lambda: canvas_attention(
        *mine, scale=scale, window=layer.window, rule="symmetric", out=out
    )  # fmt: skip


def triton_attention(batch: Batch, layer: Layer, scale: float) -> Attend:
    """TRITON_ATTN of vLLM, called as its backend calls it."""
    from vllm.v1.attention.ops.triton_unified_attention import unified_attention

    out = torch.empty_like(batch.query)
    rows = 128 // layer.key_heads
    parts = (rows, HEADS, SEGMENTS)
    window = (-1, -1) if layer.window is None else (layer.window - 1, 0)

    def attend() -> Tensor:
        unified_attention(
            q=batch.query, k=batch.key_pages, v=batch.value_pages, out=out,
            cu_seqlens_q=batch.query_starts, max_seqlen_q=len(batch.query),
            seqused_k=batch.key_counts, max_seqlen_k=8192, softmax_scale=scale,
            causal=batch.causal, window_size=window, block_table=batch.block_table, softcap=0,
            q_descale=None, k_descale=one, v_descale=one, seq_threshold_3D=rows,
            num_par_softmax_segments=SEGMENTS, softmax_segm_output=mixed,
            softmax_segm_max=greatest, softmax_segm_expsum=total,
        )  # fmt: skip
        return out

    device = batch.query.device
    one = torch.ones(1, device=device).expand(len(batch.key_counts), layer.key_heads)
    mixed = torch.empty(*parts, layer.head_dim, device=device)
    greatest, total = torch.empty(2, *parts, device=device)
    return attend


def flash_attention_4(batch: Batch, layer: Layer, scale: float) -> Attend:
    """FLASH_ATTN of vLLM, which is FlashAttention 4 for these heads."""
    from vllm.vllm_flash_attn.flash_attn_interface import flash_attn_varlen_func

    out = torch.empty_like(batch.query)
    window = None if layer.window is None else [layer.window - 1, layer.window - 1]

    def attend() -> Tensor:
        flash_attn_varlen_func(
            q=batch.query, k=batch.key_pages, v=batch.value_pages, out=out,
            cu_seqlens_q=batch.query_starts, max_seqlen_q=len(batch.query),
            seqused_k=batch.key_counts, max_seqlen_k=8192, softmax_scale=scale,
            causal=window is None, window_size=window, block_table=batch.block_table,
            fa_version=4, dynamic_causal=batch.causal, num_splits=0,
        )  # fmt: skip
        return out

    return attend


def beside(batch: Batch) -> Batch:
    """The same keys and values in the layout of our backend: each key's value behind it."""
    joined = torch.cat((batch.key_pages, batch.value_pages), -1).transpose(1, 2).contiguous()
    keys, values = joined.transpose(1, 2).chunk(2, -1)
    return batch._replace(key_pages=keys, value_pages=values)


def measured(name: str, build: Callable[[], Attend], truth: Tensor) -> Row:
    """Time and error, or why there are none."""
    try:
        attend = build()
        return {f"{name}_error": off_by(attend(), truth), f"{name}_us": median_us(attend)}
    except Exception as error:  # the other kernels are measured nevertheless
        return {f"{name}_refused": f"{type(error).__name__}: {error}"[:300]}


def compare(layer: Layer, sequences: list[tuple[int, int, bool]], **named: object) -> Row:
    """One batch, in both page sizes."""
    best: Row = {"layer": layer.name, "layers": layer.count, **named}
    scale = layer.head_dim**-0.5
    for size in (layer.page_size, SMALL_PAGES[layer.name]):
        paged = layer._replace(page_size=size)
        device = torch.device("cuda")
        batch = batch_of(paged, sequences, torch.bfloat16, device)
        truth = reference.canvas_attention(
            *batch, scale=scale, window=layer.window, rule="symmetric"
        )  # fmt: skip
        for name, build in (
            ("ours", lambda b=batch, x=paged: ours(b, x, scale)),
            ("triton", lambda b=batch, x=paged: triton_attention(b, x, scale)),
            ("fa4", lambda b=batch, x=paged: flash_attention_4(b, x, scale)),
        ):
            found = measured(name, build, truth)
            if found.get(f"{name}_us", 1e9) < best.get(f"{name}_us", 1e10):
                best |= found | {f"{name}_pages": size}
            else:
                best |= {key: value for key, value in found.items() if "refused" in key}
    return best


def summed(mine: list[Row]) -> str:
    """The 30 layers together, and one of each kind."""
    parts: list[str] = []
    for name in ("ours", "triton", "fa4"):
        known = all(f"{name}_us" in row for row in mine)
        whole = sum(row["layers"] * row[f"{name}_us"] for row in mine) if known else float("nan")
        single = "/".join(f"{row.get(f'{name}_us', float('nan')):.1f}" for row in mine)
        parts.append(f"{name} {whole:8.1f} ({single})")
    return "  ".join(parts)


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found: Row = {"gpu": torch.cuda.get_device_name(), "ceilings": measure_ceilings()._asdict()}
    rows: list[Row] = found.setdefault("attention", [])
    batches: list[Row] = found.setdefault("batches", [])
    for prompt in PROMPTS:
        for canvas in CANVASES:
            one = [(canvas, prompt + canvas, False)]
            mine = [compare(layer, one, prompt=prompt, canvas=canvas) for layer in LAYERS]
            rows += mine
            print(f"prompt {prompt:5} canvas {canvas:3}: {summed(mine)}", flush=True)
    for name, sequences in BATCHES.items():
        mine = [compare(layer, sequences, batch=name) for layer in LAYERS]
        batches += mine
        print(f"{name}: {summed(mine)}", flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    for row in (*rows, *batches):
        refused = [f"{key}: {value}" for key, value in row.items() if "refused" in key]
        if refused:
            print({**row}, *refused, sep="\n  ")
            break


if __name__ == "__main__":
    main()
