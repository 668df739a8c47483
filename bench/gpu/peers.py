"""Attention of a canvas by our kernel and by vLLM's two backends, in one run on this GPU.

    PYTHONPATH=kernels:. python -m bench.gpu.peers [--kernels KERNELS.json] --out FILE

Needs vLLM. KERNELS.json is what bench.gpu.kernels wrote, for the tilings it found best instead of
those that the kernel chooses. All get the same batch by the symmetric rule, theirs in pages of
vLLM's own choice and in ours, of which the faster counts; each is compared with the float32
reference first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from dg_engine.vllm_plugin.canvas_attention import flash_attention
from dg_engine.vllm_plugin.joining import is_told_apart
from dg_kernels import reference
from dg_kernels.canvas_attention import Tiling, canvas_attention
from torch import Tensor

from bench.gpu.kernels import (
    CANVASES,
    HEADS,
    LAYERS,
    PROMPTS,
    ROUNDING,
    SMALL_PAGES,
    Batch,
    Layer,
    Row,
    batch_of,
    default_tiling,
    expect,
    measure_ceilings,
    median_us,
    off_by,
)

SEGMENTS = 16
"""Of vLLM's split softmax."""
Attend = Callable[[], Tensor]


def ours(batch: Batch, layer: Layer, scale: float, tiling: Tiling) -> Attend:
    """What our backend does with such a layer and batch, in its own layout."""
    flash = flash_attention() if layer.window is None else None
    if flash is None or is_told_apart(len(batch.query), max(CANVASES)):
        return kernel(beside(batch), layer, scale, tiling)
    out, mine = torch.empty_like(batch.query), beside(batch)

    def attend() -> Tensor:
        flash(*mine, 8192, scale, out)
        return out

    return attend


def kernel(batch: Batch, layer: Layer, scale: float, tiling: Tiling) -> Attend:
    """Our kernel."""
    out = torch.empty_like(batch.query)
    return lambda: canvas_attention(
        *batch, scale=scale, window=layer.window, rule="symmetric", tiling=tiling, out=out
    )


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


def expect_mixed_batch() -> None:
    """What our backend leaves to FlashAttention 4 is right for a batch of every kind of sequence;
    raises SystemExit where it is not."""
    attend = flash_attention()
    if attend is None:
        return
    layer = LAYERS[1]._replace(page_size=SMALL_PAGES["full"])
    sequences = [(256, 4352, False), (100, 100, True), (0, 50, False), (1, 700, True)]
    batch = beside(batch_of(layer, sequences, torch.bfloat16, torch.device("cuda")))
    scale = layer.head_dim**-0.5
    out = torch.full_like(batch.query, torch.nan)
    attend(*batch, 8192, scale, out)
    truth = reference.canvas_attention(*batch, scale=scale)
    expect("FlashAttention 4, mixed batch", off_by(out, truth), ROUNDING[torch.bfloat16])


def measured(name: str, build: Callable[[], Attend], truth: Tensor) -> Row:
    """Time and error, or why there are none."""
    try:
        attend = build()
        return {f"{name}_error": off_by(attend(), truth), f"{name}_us": median_us(attend)}
    except Exception as error:  # the other kernels are measured nevertheless
        return {f"{name}_refused": f"{type(error).__name__}: {error}"[:300]}


def compare(layer: Layer, prompt: int, canvas: int, tiling: Tiling) -> Row:
    """One shape, in both page sizes."""
    best: Row = {"layer": layer.name, "layers": layer.count, "prompt": prompt, "canvas": canvas}
    scale = layer.head_dim**-0.5
    for size in (layer.page_size, SMALL_PAGES[layer.name]):
        paged = layer._replace(page_size=size)
        device = torch.device("cuda")
        batch = batch_of(paged, [(canvas, prompt + canvas, False)], torch.bfloat16, device)
        truth = reference.canvas_attention(
            *batch, scale=scale, window=layer.window, rule="symmetric"
        )  # fmt: skip
        for name, build in (
            ("ours", lambda b=batch, x=paged: ours(b, x, scale, tiling)),
            ("kernel", lambda b=batch, x=paged: kernel(b, x, scale, tiling)),
            ("triton", lambda b=batch, x=paged: triton_attention(b, x, scale)),
            ("fa4", lambda b=batch, x=paged: flash_attention_4(b, x, scale)),
        ):
            found = measured(name, build, truth)
            if found.get(f"{name}_us", 1e9) < best.get(f"{name}_us", 1e10):
                best |= found | {f"{name}_pages": size}
            else:
                best |= {key: value for key, value in found.items() if "refused" in key}
    return best


def summed(rows: list[Row], prompt: int, canvas: int) -> str:
    """A line of the table: the 30 layers together."""
    mine = [row for row in rows if (row["prompt"], row["canvas"]) == (prompt, canvas)]
    parts: list[str] = []
    for name in ("ours", "kernel", "triton", "fa4"):
        known = all(f"{name}_us" in row for row in mine)
        whole = sum(row["layers"] * row[f"{name}_us"] for row in mine) if known else float("nan")
        single = "/".join(f"{row.get(f'{name}_us', float('nan')):.1f}" for row in mine)
        parts.append(f"{name} {whole:8.1f} ({single})")
    return f"prompt {prompt:5} canvas {canvas:3}: " + "  ".join(parts)


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernels", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    best = {(x.name, canvas): default_tiling(x, canvas) for x in LAYERS for canvas in CANVASES}
    for row in json.loads(options.kernels.read_text())["attention"] if options.kernels else ():
        values = row["tiling"] | {
            "partial_dtype": getattr(torch, row["tiling"]["partial_dtype"].removeprefix("torch."))
        }
        best[row["layer"], row["canvas"]] = Tiling(**values)
    expect_mixed_batch()
    ceilings = measure_ceilings()
    rows: list[Row] = []
    for prompt in PROMPTS:
        for canvas in CANVASES:
            for layer in LAYERS:
                rows.append(compare(layer, prompt, canvas, best[layer.name, canvas]))
            print(summed(rows, prompt, canvas), flush=True)
            found = {"gpu": torch.cuda.get_device_name(), "ceilings": ceilings._asdict()}
            options.out.write_text(json.dumps(found | {"attention": rows}, indent=1) + "\n")
    for row in rows:
        refused = [f"{key}: {value}" for key, value in row.items() if "refused" in key]
        if refused:
            print(row["layer"], row["prompt"], row["canvas"], *refused, sep="\n  ")
            break


if __name__ == "__main__":
    main()
