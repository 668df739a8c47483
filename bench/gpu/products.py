"""The FP8 products of a layer of the 26B-A4B model: ours by every cut beside vLLM's and PyTorch's.

    python -m bench.gpu.products --out FILE [--workers 12]

Needs vLLM and a GPU. Weights and rows are random, scaled by channel and by row. Every cut of
dg_kernels.scaled_product is compiled in many processes, compared with float32 and timed in this
one, in a CUDA graph with a cold cache, as weights are in a forward.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import NamedTuple

import torch
from dg_kernels import reference
from dg_kernels.scaled_product import Cut, choose_cut, scaled_product
from torch import Tensor
from triton.errors import TritonError

from bench.gpu.compiling import in_processes
from bench.gpu.kernels import SHARED_BYTES, Row, expect, measure_ceilings, median_us, off_by
from bench.gpu.turn import held

SHAPES = {
    "qkv of a sliding layer": (8192, 2816),
    "qkv of a full layer": (10240, 2816),
    "out of a sliding layer": (2816, 4096),
    "out of a full layer": (2816, 8192),
    "gate and up": (4224, 2816),
    "down": (2816, 2112),
}
"""Columns and depth."""
ROWS = (32, 64, 128, 256, 512)
ERROR = 1e-2
TICKETS = 8192


class Operands(NamedTuple):
    """Of one product."""

    rows_of: Tensor
    weights: Tensor
    row_scales: Tensor
    column_scales: Tensor


def operands(rows: int, columns: int, depth: int) -> Operands:
    """Random ones."""

    def matrix(*shape: int) -> Tensor:
        return torch.randn(shape, device="cuda").to(torch.float8_e4m3fn)

    scales = [torch.rand(size, 1, device="cuda") + 0.5 for size in (rows, columns)]
    return Operands(matrix(rows, depth), matrix(columns, depth), *scales)


def cuts(rows: int) -> list[Cut]:
    """What may win for so many rows, and fits the shared memory."""
    found: list[Cut] = []
    few = rows <= 64
    sizes = ((16, 32, 64), (64, 128)) if few else ((64, 128), (64, 128, 256))
    for block_m, block_n, block_k, splits, stages, warps in itertools.product(
        *sizes, (128, 256), (1, 2, 4), (3, 4), (4, 8)
    ):
        if stages * block_k * (block_m + block_n) > SHARED_BYTES - 1024:
            continue
        if few and (block_m < min(rows, 64) or (warps == 8 and block_n == 64)):
            continue
        if not few and (warps == 8) != (block_m * block_n >= 128 * 128):
            continue
        if block_k == 256 and stages > 3:
            continue
        found.append(Cut(block_m, block_n, block_k, splits, few, warps, stages))
    return found


def worth(cut: Cut, rows: int, columns: int) -> bool:
    """Whether a cut gives the chip neither far too few programs nor several rounds of them."""
    tiles = -(-rows // cut.block_m) * -(-columns // cut.block_n)
    return 40 <= tiles * cut.splits <= 700 and (cut.splits == 1 or tiles < 132)


def compile_cuts(mine: list[tuple[int, int, int, Cut]]) -> None:
    """Run each once, so that its code lies in Triton's cache."""
    tickets = torch.zeros(TICKETS, dtype=torch.int32, device="cuda")
    for rows, columns, depth, cut in mine:
        try:
            scaled_product(*operands(rows, columns, depth), cut=cut, tickets=tickets)
        except TritonError as error:  # what the compiler refuses is refused again when it is timed
            print(cut, type(error).__name__, flush=True)
    torch.cuda.synchronize()


def measure(name: str, rows: int, tickets: Tensor, floor_us: float) -> Row:
    """One product by everything that can do it."""
    from vllm import _custom_ops as vllm_ops

    columns, depth = SHAPES[name]
    given = operands(rows, columns, depth)
    truth = reference.scaled_product(*given, dtype=torch.float32)
    turned, column_scales = given.weights.t(), given.column_scales.t()
    others = {
        "cutlass": lambda: vllm_ops.cutlass_scaled_mm(
            given.rows_of, turned, scale_a=given.row_scales, scale_b=given.column_scales,
            out_dtype=torch.bfloat16,
        ),
        "torch": lambda: torch._scaled_mm(  # pyright: ignore[reportPrivateUsage]
            given.rows_of, turned, scale_a=given.row_scales, scale_b=column_scales,
            out_dtype=torch.bfloat16, use_fast_accum=True,
        ),
    }  # fmt: skip
    row: Row = {"product": name, "rows": rows, "floor_us": floor_us, "cuts": []}
    for other, work in others.items():
        try:
            row[f"{other}_error"] = off_by(work(), truth)
            row[f"{other}_us"] = median_us(work)
        except Exception as error:  # what is not offered here
            row[f"{other}_refused"] = f"{type(error).__name__}: {error}"[:200]
    for cut in cuts(rows):
        if not worth(cut, rows, columns):
            continue
        found: Row = {"cut": cut._asdict()}
        row["cuts"].append(found)
        try:
            error = off_by(scaled_product(*given, cut=cut, tickets=tickets), truth)
            expect(f"{name}, {rows} rows, {cut}", error, ERROR)
            found["us"] = median_us(
                lambda cut=cut: scaled_product(*given, cut=cut, tickets=tickets)
            )  # fmt: skip
        except TritonError as error:
            found["refused"] = type(error).__name__
    timed = [found for found in row["cuts"] if "us" in found]
    row["best"] = min(timed, key=lambda found: found["us"])
    chosen = choose_cut(rows, columns, depth)
    row["chosen"] = chosen._asdict()
    row["ours_us"] = median_us(lambda: scaled_product(*given, cut=chosen, tickets=tickets))
    return row


def main() -> None:
    """Compile, then measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=12)
    options = parser.parse_args()
    wanted = [
        (rows, *shape, cut)
        for shape in SHAPES.values()
        for rows in ROWS
        for cut in (*cuts(rows), choose_cut(rows, *shape))
        if worth(cut, rows, shape[0])
    ]
    # Rows are no constant of the code.
    once = {(depth, cut): (rows, columns, depth, cut) for rows, columns, depth, cut in wanted}
    in_processes(compile_cuts, list(once.values()), options.workers)
    with held():
        ceilings = measure_ceilings()
        tickets = torch.zeros(TICKETS, dtype=torch.int32, device="cuda")
        rows: list[Row] = []
        for name, (columns, depth) in SHAPES.items():
            for count in ROWS:
                moved = columns * depth + count * depth + 2 * count * columns
                floor_us = ceilings.floor_us(moved, count * columns * depth)
                row = measure(name, count, tickets, floor_us)
                rows.append(row)
                cut = Cut(**row["best"]["cut"])
                print(
                    f"{name:24} {count:4} floor {floor_us:5.1f} cutlass"
                    f" {row.get('cutlass_us', 0):5.1f} torch {row.get('torch_us', 0):5.1f} ours"
                    f" {row['ours_us']:5.1f} best {row['best']['us']:5.1f} {tuple(cut)}",
                    flush=True,
                )
                text = json.dumps({"ceilings": ceilings._asdict(), "rows": rows}, indent=1)
                options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
