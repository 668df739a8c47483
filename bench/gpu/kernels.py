"""The kernels on this machine's GPU: right first, then how near to the chip's limits.

    PYTHONPATH=kernels:. python -m bench.gpu.kernels --out OUT/kernels.json [--tune SECONDS]

Needs torch and triton alone. Every kernel is compared in bfloat16 with its float32 reference on
fresh random inputs, its output filled with NaN before. Then each is captured in a CUDA graph, so
that launching costs what it costs in a captured step, and timed by `triton.testing.do_bench`, which
clears the L2 cache in front of each run. The ceilings, a copy and a matrix product, are measured in
the same run. `--tune` tries the prepared tilings for at most that long and takes the best of them;
`--check` only compares, also in Triton's interpreter.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import triton
from dg_kernels import reference
from dg_kernels.canvas_attention import Tiling, canvas_attention, choose_tiling
from dg_kernels.row_stats import Spread, row_stats
from dg_kernels.soft_embedding import soft_embedding
from dg_kernels.suffix_alignment import suffix_alignment
from torch import Tensor
from triton.errors import TritonError
from triton.testing import do_bench

from bench.gpu.compiling import in_processes

Row = dict[str, Any]
HEADS, HIDDEN, VOCAB, SOFTCAP = 16, 2816, 262_144, 30.0
PROMPTS, CANVASES = (512, 1024, 2048, 4096, 8192), (32, 256)
TUNED_AT = 4096
"""Prompt tokens at which tilings are compared."""
SHARED_BYTES = 227 * 1024
"""Shared memory that one program can have on Hopper."""
ROUNDING = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-4}
"""Greatest allowed length of the difference, over the length of the reference."""


class Layer(NamedTuple):
    """One of the two kinds of attention layer of the 26B-A4B model."""

    name: str
    key_heads: int
    head_dim: int
    window: int | None
    page_size: int
    count: int


LAYERS = (Layer("sliding", 8, 256, 1024, 64, 25), Layer("full", 2, 512, None, 128, 5))
SMALL_PAGES = {"sliding": 16, "full": 32}
"""What vLLM takes by itself; pages that hold a whole tile of keys cost fewer addresses."""


class Ceilings(NamedTuple):
    """What this chip was seen to do."""

    bytes_per_s: float
    flops_per_s: float

    def floor_us(self, moved: float, flops: float = 0.0) -> float:
        """Microseconds below which so many bytes and operations cannot be done."""
        return 1e6 * max(moved / self.bytes_per_s, flops / self.flops_per_s)


def median_us(work: Callable[[], object]) -> float:
    """Median of a captured run, microseconds."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    found = do_bench(graph.replay, warmup=5, rep=30, return_mode="median")
    return 1000 * float(found)  # pyright: ignore[reportArgumentType]


def measure_ceilings() -> Ceilings:
    """A copy of 4 GiB, and a product of two random 8192 by 8192 bfloat16 matrices."""
    source = torch.randint(0, 255, (2**32,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copied = 2 * source.numel() / do_bench(lambda: target.copy_(source), return_mode="median")
    left, right = torch.randn(2, 8192, 8192, dtype=torch.bfloat16, device="cuda")
    done = 2 * 8192**3 / do_bench(lambda: left @ right, return_mode="median")
    return Ceilings(1000 * copied, 1000 * done)


def off_by(found: Tensor, expected: Tensor) -> float:
    """Length of the difference over the length of what is right; NaN where anything is NaN."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def expect(name: str, error: float, limit: float) -> Row:
    """One comparison; NaN never passes."""
    if not error <= limit:
        raise SystemExit(f"{name} is off by {error:.3g}, more than {limit:.3g}; see that first.")
    return {"name": name, "error": error, "limit": limit}


class Batch(NamedTuple):
    """Arguments of canvas_attention."""

    query: Tensor
    key_pages: Tensor
    value_pages: Tensor
    block_table: Tensor
    query_starts: Tensor
    key_counts: Tensor
    causal: Tensor


def batch_of(
    layer: Layer, sequences: list[tuple[int, int, bool]], dtype: torch.dtype, device: torch.device
) -> Batch:
    """Random contents in scattered pages; a sequence is (queries, keys, causal)."""
    needed = [-(-keys // layer.page_size) for _, keys, _ in sequences]
    order = torch.randperm(sum(needed), device=device, dtype=torch.int32)
    table = torch.zeros(len(sequences), max(needed), dtype=torch.int32, device=device)
    for row, count in enumerate(needed):
        table[row, :count] = order[sum(needed[:row]) :][:count]
    shape = (2, sum(needed), layer.page_size, layer.key_heads, layer.head_dim)
    starts = torch.tensor([0, *(queries for queries, _, _ in sequences)]).cumsum(0)
    return Batch(
        torch.randn(int(starts[-1]), HEADS, layer.head_dim, dtype=dtype, device=device),
        *torch.randn(shape, dtype=dtype, device=device),
        table,
        starts.to(torch.int32).to(device),
        torch.tensor([keys for _, keys, _ in sequences], dtype=torch.int32, device=device),
        torch.tensor([causal for _, _, causal in sequences], device=device),
    )


def check_attention(dtype: torch.dtype, device: torch.device, small: bool) -> Iterator[Row]:
    """Mixed batches by both rules, split and whole."""
    size = 4 if small else 256
    mixed = [(size, 5 * size, False), (1, 4 * size, True), (size - 1, size - 1, False)]
    for layer in (*LAYERS, *(x._replace(page_size=SMALL_PAGES[x.name]) for x in LAYERS)):
        window = layer.window and (2 * size if small else layer.window)
        batch = batch_of(layer, mixed, dtype, device)
        # Scores as spread as a trained model's; without the factor softmax is one-hot here.
        scale = layer.head_dim**-0.5
        best = choose_tiling(len(batch.query), HEADS, layer.key_heads, layer.head_dim)
        for rule in ("anchored", "symmetric"):
            expected = reference.canvas_attention(*batch, scale=scale, window=window, rule=rule)
            stages = 1 if small else best.stages
            for kind, tiling in (
                ("1 split", best._replace(splits=1, stages=stages)),
                ("4 splits", best._replace(splits=4, stages=stages)),
                # On Hopper by Gluon where it is made for the layer.
                ("as it chooses itself", None),
            ):
                out = torch.full_like(batch.query, math.nan)
                canvas_attention(
                    *batch, scale=scale, window=window, rule=rule, tiling=tiling, out=out
                )  # fmt: skip
                name = f"attention, {layer.name} layer, pages of {layer.page_size}, {rule}, {kind}"
                yield expect(name, off_by(out, expected), ROUNDING[dtype])


def check_logits(dtype: torch.dtype, device: torch.device, small: bool) -> Iterator[Row]:
    """Row statistics, soft embedding and alignment over the same logits."""
    rows, vocab, hidden, top_k = (3, 5000, 64, 8) if small else (64, VOCAB, HIDDEN, 64)
    logits = (torch.randn(rows, vocab, device=device) * 6).to(dtype)
    temperature = torch.linspace(0.4, 0.8, rows, device=device)
    seeds = torch.randint(2**62, (rows,), device=device)
    options: Row = {"softcap": SOFTCAP, "top_k": top_k, "seeds": seeds}
    expected = reference.row_stats(logits, temperature, **options)
    for fast in (False, True) if device.type == "cuda" else (False,):
        limit, flips = (0.02, 0.25) if fast else (1e-4, 0.05)
        found = row_stats(logits, temperature, fast_tanh=fast, **options)
        kind = "fast tanh" if fast else "exact tanh"
        for field in ("log_sum_exp", "entropy", "top_logits"):
            error = off_by(getattr(found, field), getattr(expected, field))
            yield expect(f"row_stats, {kind}, {field}", error, limit)
        for field in ("argmax", "sample"):
            differ = (getattr(found, field) != getattr(expected, field)).double().mean()
            # Where rounding orders two tokens of nearly one logit differently.
            yield expect(f"row_stats, {kind}, share of {field} that differs", float(differ), flips)
    table = torch.randn(vocab, hidden, dtype=dtype, device=device)
    ids, tops = expected.top_ids, expected.top_logits
    soft = soft_embedding(tops, ids, table, scale=hidden**0.5)
    truth = reference.soft_embedding(tops, ids, table, scale=hidden**0.5)
    yield expect("soft_embedding", off_by(soft, truth), ROUNDING[dtype])
    aligned = (
        logits[None], temperature[None], expected.log_sum_exp[None],
        torch.randint(vocab, (1, 3), device=device),
        torch.tensor([3], dtype=torch.int32, device=device),
    )  # fmt: skip
    scores = suffix_alignment(*aligned, softcap=SOFTCAP)
    truth = reference.suffix_alignment(*aligned, softcap=SOFTCAP)
    yield expect("suffix_alignment", off_by(scores, truth), 1e-5)


def tilings(layer: Layer, canvas: int) -> list[Tiling]:
    """Prepared for Hopper: what fits its shared memory and registers, the likeliest first."""
    best = choose_tiling(canvas, HEADS, layer.key_heads, layer.head_dim)
    rows = canvas * HEADS // layer.key_heads
    found = [best]
    for block_m in (128, 64):
        for value_parts in (2, 1) if layer.head_dim == 512 else (1,):
            accumulators = block_m * layer.head_dim // value_parts
            # A warp takes 16 rows, or fewer where a thread's 255 registers would not hold them.
            warps = max(block_m // 16, 4 * -(-accumulators // (4 * 32 * 160)))
            if block_m > rows or warps > 8:
                continue
            programs = rows // block_m * layer.key_heads * value_parts
            fill = max(1, 132 // programs)
            for block_n in (16, 32, 64) if layer.head_dim == 512 else (32, 64):
                for stages in (3, 4, 2):
                    tiles = stages * block_n * layer.head_dim * (1 + 1 / value_parts)
                    if 2 * (block_m * layer.head_dim + tiles) > SHARED_BYTES:
                        continue
                    found += [
                        Tiling(block_m, block_n, splits, value_parts, warps, stages)
                        for splits in sorted({fill, 2 * fill, max(1, fill // 2)})
                    ]
    return found


def tune(layer: Layer, canvas: int, until: float, log: list[Row]) -> Tiling:
    """The fastest tiling tried before `until` (time.monotonic); all that were tried go to `log`."""
    device = torch.device("cuda")
    batch = batch_of(layer, [(canvas, TUNED_AT + canvas, False)], torch.bfloat16, device)

    def attempt(tiling: Tiling) -> float:
        row: Row = {"layer": layer.name, "canvas": canvas, "tiling": tiling_row(tiling)}
        log.append(row)
        try:
            row["us"] = median_us(
                lambda: canvas_attention(*batch, window=layer.window, tiling=tiling)
            )
        except TritonError as error:
            row["refused"] = str(error)
        return row.get("us", math.inf)

    candidates = tilings(layer, canvas)
    best, least = candidates[0], math.inf
    for tiling in candidates:
        if time.monotonic() > until:
            break
        if (took := attempt(tiling)) < least:
            best, least = tiling, took
    shorter = best._replace(partial_dtype=torch.bfloat16)
    return shorter if best.splits > 1 and attempt(shorter) < least else best


def compile_tilings(mine: list[tuple[Layer, int, Tiling]]) -> None:
    """Run each once, so that its code lies in Triton's cache."""
    for layer, canvas, tiling in mine:
        device = torch.device("cuda")
        batch = batch_of(layer, [(canvas, TUNED_AT + canvas, False)], torch.bfloat16, device)
        # What the compiler refuses is refused again when it is timed.
        with contextlib.suppress(TritonError):
            canvas_attention(*batch, window=layer.window, tiling=tiling)
    torch.cuda.synchronize()


def tiling_row(tiling: Tiling) -> Row:
    """As JSON has it."""
    return tiling._asdict() | {"partial_dtype": str(tiling.partial_dtype)}


def time_attention(ceilings: Ceilings, tuned: dict[tuple[str, int], Tiling]) -> Iterator[Row]:
    """One canvas behind a cached prompt, by layer; and PyTorch's attention on contiguous keys.

    The kernel chooses its tiling where none was tuned.
    """
    device = torch.device("cuda")
    for layer in LAYERS:
        for prompt in PROMPTS:
            for canvas in CANVASES:
                batch = batch_of(layer, [(canvas, prompt + canvas, False)], torch.bfloat16, device)
                seen = prompt if layer.window is None else min(prompt, layer.window - 1)
                keys = seen + canvas
                moved = 4 * layer.head_dim * (keys * layer.key_heads + canvas * HEADS)
                flops = 4 * canvas * HEADS * keys * layer.head_dim
                tiling = tuned.get((layer.name, canvas))
                ours = median_us(
                    lambda batch=batch, layer=layer, tiling=tiling: canvas_attention(
                        *batch, window=layer.window, tiling=tiling
                    )
                )
                paged = layer._replace(page_size=SMALL_PAGES[layer.name])
                small = batch_of(paged, [(canvas, prompt + canvas, False)], torch.bfloat16, device)
                ours_small = median_us(
                    lambda batch=small, layer=layer, tiling=tiling: canvas_attention(
                        *batch, window=layer.window, tiling=tiling
                    )
                )
                dense = [
                    t.flatten(0, 1)[:keys].transpose(0, 1)[None].contiguous()
                    for t in (batch.key_pages, batch.value_pages)
                ]
                query = batch.query.transpose(0, 1)[None].contiguous()
                library = median_us(
                    lambda query=query, dense=dense: F.scaled_dot_product_attention(
                        query, *dense, enable_gqa=True, scale=1.0
                    )
                )
                yield {
                    "layer": layer.name, "layers": layer.count, "prompt": prompt, "canvas": canvas,
                    "ours_us": ours, "small_pages_us": ours_small, "torch_us": library,
                    "bytes": moved, "flops": flops,
                    "floor_us": ceilings.floor_us(moved, flops),
                }  # fmt: skip


def time_row_stats(ceilings: Ceilings) -> Iterator[Row]:
    """By rows, type and top-k; the best spread, and the same statistics by PyTorch."""
    for rows in CANVASES:
        for dtype in (torch.bfloat16, torch.float32):
            logits = (torch.randn(rows, VOCAB, device="cuda") * 6).to(dtype)
            temperature = torch.full((rows,), 0.6, device="cuda")
            seeds = torch.arange(rows, device="cuda")
            library = median_us(lambda x=logits, t=temperature: torch_stats(x, t))
            for top_k in (0, 16, 64):
                for fast in (False, True) if dtype is torch.bfloat16 else (False,):
                    options: Row = {"top_k": top_k, "fast_tanh": fast, "seeds": seeds}
                    tried = {
                        spread: median_us(
                            lambda x=logits, t=temperature, options=options, spread=spread: (
                                row_stats(x, t, softcap=SOFTCAP, spread=spread, **options)
                            )
                        )
                        for spread in (Spread(1, 4), Spread(1, 8), Spread(2, 8), Spread(4, 8))
                    }
                    spread = min(tried, key=lambda spread: tried[spread])
                    moved = logits.numel() * logits.element_size()
                    yield {
                        "rows": rows, "dtype": str(dtype), "top_k": top_k, "fast_tanh": fast,
                        "ours_us": tried[spread], "torch_us": library, "bytes": moved,
                        "floor_us": ceilings.floor_us(moved), "spread": spread._asdict(),
                        "tried": [[*spread, us] for spread, us in tried.items()],
                    }  # fmt: skip


def torch_stats(logits: Tensor, temperature: Tensor) -> tuple[Tensor, ...]:
    """Softcap, argmax, entropy, a Gumbel draw and top-64 as PyTorch operations."""
    found = torch.tanh(logits.float() / SOFTCAP) * SOFTCAP / temperature[:, None]
    log_probabilities = torch.log_softmax(found, -1)
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1)
    noise = torch.empty_like(found).exponential_().log_()
    return (found.argmax(-1), entropy, (found - noise).argmax(-1), *found.topk(64, -1))


def time_conditioning(ceilings: Ceilings) -> Iterator[Row]:
    """Soft embeddings by rows and k, and the whole product from ready probabilities."""
    table = torch.randn(VOCAB, HIDDEN, dtype=torch.bfloat16, device="cuda")
    for rows in CANVASES:
        whole = torch.softmax(torch.randn(rows, VOCAB, device="cuda"), -1).bfloat16()
        product = median_us(lambda whole=whole: whole @ table)
        for top_k in (8, 16, 64):
            logits = torch.randn(rows, top_k, device="cuda")
            ids = torch.randint(VOCAB, (rows, top_k), device="cuda")
            ours = median_us(
                lambda logits=logits, ids=ids: soft_embedding(logits, ids, table, scale=HIDDEN**0.5)
            )
            moved = 2 * HIDDEN * (rows * top_k + rows)
            yield {
                "rows": rows, "top_k": top_k, "ours_us": ours, "torch_us": product, "bytes": moved,
                "floor_us": ceilings.floor_us(moved),
            }  # fmt: skip


def time_alignment(ceilings: Ceilings) -> Iterator[Row]:
    """Scores of 32 suffix tokens; every logit read is a sector of 32 bytes."""
    for canvases in (1, 8):
        logits = torch.randn(canvases, 256, VOCAB, dtype=torch.bfloat16, device="cuda")
        small = torch.ones(canvases, 256, device="cuda")
        suffix = torch.randint(VOCAB, (canvases, 32), device="cuda")
        counts = torch.full((canvases,), 32, dtype=torch.int32, device="cuda")
        given = (logits, small, small, suffix, counts)
        ours = median_us(lambda given=given: suffix_alignment(*given, softcap=SOFTCAP))
        moved = canvases * 32 * (256 * 32 + 256 * 2)
        yield {"canvases": canvases, "ours_us": ours, "floor_us": ceilings.floor_us(moved)}


def table(found: Row) -> Iterator[str]:
    """What a reader wants to see last."""
    for name in ("row_stats", "soft_embedding", "suffix_alignment"):
        for row in found[name]:
            keys = ("rows", "canvases", "dtype", "top_k", "fast_tanh")
            what = " ".join(f"{key}={row[key]}" for key in keys if key in row)
            yield f"{name:17} {what:52} {timing(row)}"
    yield "attention: all 30 layers, microseconds, anchored"
    for prompt in PROMPTS:
        for canvas in CANVASES:
            rows = [r for r in found["attention"] if (r["prompt"], r["canvas"]) == (prompt, canvas)]
            whole = {
                key: sum(r["layers"] * r[key] for r in rows)
                for key in ("ours_us", "small_pages_us", "torch_us", "floor_us")
            }
            parts = ", ".join(f"{r['layer']} {r['ours_us']:.1f}/{r['floor_us']:.1f}" for r in rows)
            yield f"  prompt {prompt:5} canvas {canvas:3} {timing(whole)}  (one layer: {parts})"


def timing(row: Row) -> str:
    """Ours, the library's, the floor and the share of it reached."""
    library = f" torch {row['torch_us']:8.1f}" if "torch_us" in row else ""
    small = f" small pages {row['small_pages_us']:8.1f}" if "small_pages_us" in row else ""
    share = row["floor_us"] / row["ours_us"]
    return f"ours {row['ours_us']:8.1f}{small}{library} floor {row['floor_us']:8.1f} ({share:.0%})"


def main() -> None:
    """Compare, tune, time, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--tune", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=12, help="that compile tilings")
    parser.add_argument("--check", action="store_true", help="compare with the references only")
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    dtype = torch.bfloat16 if on_gpu else torch.float16
    checked: list[Row] = []
    for checks in (check_attention, check_logits):
        for row in checks(dtype, device, small=not on_gpu):
            print(f"{row['error']:9.2e}  {row['name']}", flush=True)
            checked.append(row)
    found: Row = {"torch": torch.__version__, "triton": triton.__version__, "checked": checked}
    if not options.check:
        found["gpu"] = torch.cuda.get_device_name()
        ceilings = measure_ceilings()
        found["ceilings"] = ceilings._asdict()
        found["tuning"] = []
        tuned: dict[tuple[str, int], Tiling] = {}
        kinds = [(layer, canvas) for canvas in (256, 32) for layer in LAYERS]
        if options.tune:
            begun = time.monotonic()
            tried = [(x, canvas, tiling) for x, canvas in kinds for tiling in tilings(x, canvas)]
            in_processes(compile_tilings, tried, options.workers)
            for number, (layer, canvas) in enumerate(kinds, start=1):
                until = begun + options.tune * number / len(kinds)
                tuned[layer.name, canvas] = tune(layer, canvas, until, found["tuning"])
        found["row_stats"] = list(time_row_stats(ceilings))
        found["soft_embedding"] = list(time_conditioning(ceilings))
        found["suffix_alignment"] = list(time_alignment(ceilings))
        found["tuned"] = [
            {"layer": name, "canvas": canvas, "tiling": tiling_row(tiling)}
            for (name, canvas), tiling in tuned.items()
        ]
        found["attention"] = list(time_attention(ceilings, tuned))
        print(f"{ceilings.bytes_per_s / 1e12:.2f} TB/s, {ceilings.flops_per_s / 1e12:.0f} TFLOP/s")
        print("\n".join(table(found)))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
