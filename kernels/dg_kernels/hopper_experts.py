"""Both products of the chosen experts and the activation between them in one launch, on Hopper.

What the products of dg_kernels.experts cost is reading the weights, and each launch begins and ends
with the memory idle. Here every multiprocessor runs one program, in three parts: one asks for all
weights of the program's share in turn, tiles of the first product and then of the second, as far
ahead as shared memory goes; one brings the rows of the block that is next; one multiplies. A
block's rows stay in shared memory for all tiles that read them. Programs tell each other by a count
for each block which of its rows are made. Blocks come in two halves, so that the second product of
one half finds its rows made long ago. The rounding is that of the three launches it replaces.
Programs wait for each other, so no more are launched than run at once: one a multiprocessor, where
another kernel only delays it.
Reference: dg_kernels.reference.feed.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import functools
import math

import torch
import triton
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from dg_kernels.hopper_attention import SHARED_BYTES, TRIED
from dg_kernels.hopper_parts import bring, hold, make
from dg_kernels.reference import FP8, GREATEST, LEAST_SCALE, Places

COLUMNS = 128
"""Of the experts' output, a tile: of the first product half of them gates."""
DEPTH = 128
"""Of the sum a turn: bytes of the widest swizzle of shared memory."""
WARPS = 8
SPARE_BYTES = 6 * 1024
"""For what the compiler moves between layouts."""
LEAST_STAGES, MOST_STAGES = 3, 8


@gluon.jit
def _feed_kernel(
    rows, row_scales, first_table, first_scales, second_table, second_scales, weights, sorted_ids,
    expert_ids, total, made_of, active, greatest_of, out, count, places, greatest, least,
    INNER: gl.constexpr, HIDDEN: gl.constexpr, COPIES: gl.constexpr, ROWS: gl.constexpr,
    STAGES: gl.constexpr, PROGRAMS: gl.constexpr, COLUMNS: gl.constexpr, DEPTH: gl.constexpr,
    SHARE: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    GROUPS: gl.constexpr = (2 * INNER + COLUMNS - 1) // COLUMNS
    ACROSS: gl.constexpr = (HIDDEN + COLUMNS - 1) // COLUMNS
    IN_TURNS: gl.constexpr = HIDDEN // DEPTH
    OUT_TURNS: gl.constexpr = (INNER + DEPTH - 1) // DEPTH
    # Blocks whose rows are there, or on their way.
    SETS: gl.constexpr = 3
    SHARED: gl.constexpr = gl.NVMMASharedLayout(128, 8, 2)
    PLAIN: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    fp8: gl.constexpr = rows.dtype.element_ty

    # Blocks come in two halves: when the second product of one begins, its first is long over.
    mine = gl.program_id(0)
    blocks = gl.load(total) // ROWS
    early = blocks // 2
    late = blocks - early
    # Who has a tile more of one half has none more of the other.
    after = PROGRAMS - mine
    early_in = mine * early * GROUPS // PROGRAMS
    early_tiles = (mine + 1) * early * GROUPS // PROGRAMS - early_in
    late_in = (after - 1) * late * GROUPS // PROGRAMS
    late_tiles = after * late * GROUPS // PROGRAMS - late_in
    in_share = (early_in, early_tiles, early * GROUPS + late_in, early_tiles + late_tiles)
    # A tile of the first product is SHARE tiles of the second: all programs read as much.
    all_tiles = blocks * (SHARE * GROUPS + ACROSS)
    before_in = early_in + late * GROUPS - after * late * GROUPS // PROGRAMS
    # Whole halves of early blocks, so that there is time to bring the late ones' rows.
    early_out = mine * (2 * early) // PROGRAMS * ACROSS // 2
    late_out = mine * all_tiles // PROGRAMS - SHARE * before_in - early_out
    end_in = before_in + early_tiles + late_tiles
    early_end = (mine + 1) * (2 * early) // PROGRAMS * ACROSS // 2
    late_end = (mine + 1) * all_tiles // PROGRAMS - SHARE * end_in - early_end
    late_out = gl.minimum(gl.maximum(late_out, 0), late * ACROSS)
    late_end = gl.minimum(gl.maximum(late_end, late_out), late * ACROSS)
    out_share = (
        early_out,
        early_end - early_out,
        early * ACROSS + late_out,
        early_end - early_out + late_end - late_out,
    )

    ring = gl.allocate_shared_memory(fp8, [STAGES, COLUMNS, DEPTH], SHARED)
    held = gl.allocate_shared_memory(fp8, [IN_TURNS + OUT_TURNS, ROWS, DEPTH], SHARED)
    factors = gl.allocate_shared_memory(gl.float32, [SETS, ROWS], PLAIN)
    shares = gl.allocate_shared_memory(gl.float32, [SETS, ROWS], PLAIN)
    targets = gl.allocate_shared_memory(gl.int32, [SETS, ROWS], PLAIN)
    there = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    brought = gl.allocate_shared_memory(gl.int64, [SETS, 1], mbarrier.MBarrierLayout())
    left = gl.allocate_shared_memory(gl.int64, [SETS, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(there.index(stage), count=1)
        mbarrier.init(free.index(stage), count=1)
    for side in gl.static_range(SETS):
        mbarrier.init(brought.index(side), count=1)
        mbarrier.init(left.index(side), count=1)
    gl.warp_specialize(
        [
            (
                make,
                (
                    first_scales, second_scales, expert_ids, active, greatest_of, out, ring, there,
                    free, held, factors, shares, targets, brought, left, count, places, in_share,
                    out_share, INNER, HIDDEN, ROWS, GROUPS, ACROSS, IN_TURNS, OUT_TURNS, STAGES,
                    COLUMNS, SETS,
                ),
            ),
            (
                bring,
                (
                    first_table, second_table, expert_ids, ring, there, free, in_share, out_share,
                    GROUPS, ACROSS, IN_TURNS, OUT_TURNS, HIDDEN, STAGES, COLUMNS, DEPTH,
                ),
            ),
            (
                hold,
                (
                    rows, row_scales, weights, sorted_ids, made_of, active, greatest_of, held,
                    factors, shares, targets, brought, left, count, places, greatest, least,
                    in_share, out_share, INNER, HIDDEN, COPIES, ROWS, GROUPS, ACROSS, IN_TURNS,
                    OUT_TURNS, DEPTH, SETS,
                ),
            ),
        ],
        [1, 4],
        [24, 168],
    )  # fmt: skip


@functools.cache
def _programs(device: torch.device) -> int:
    """Multiprocessors of a device of the right kind; 0 for another."""
    found = torch.cuda.get_device_properties(device)
    return found.multi_processor_count if found.major == 9 else 0


def _stages(hidden: int, inner: int, block: int) -> int:
    """Turns of weights that fit the shared memory beside a block's rows."""
    held = (hidden // DEPTH + math.ceil(inner / DEPTH)) * DEPTH * block
    left = SHARED_BYTES - SPARE_BYTES - held
    return min(left // (COLUMNS * DEPTH), MOST_STAGES)


def fits(experts_in: Tensor, experts_out: Tensor, block: int) -> bool:
    """Whether `feed` can multiply by these experts, on their device, in blocks of so many rows."""
    inner, hidden = experts_out.shape[2], experts_out.shape[1]
    return (
        experts_in.is_cuda
        and triton.__version__.startswith(TRIED)
        and _programs(experts_in.device) > 0
        and experts_in.dtype == experts_out.dtype == FP8
        and hidden % DEPTH == 0
        and inner % 16 == 0
        and 2 * inner <= hidden
        and _stages(hidden, inner, block) >= LEAST_STAGES
    )


def _descriptor(tensor: Tensor, block: list[int]) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(tensor, block, gl.NVMMASharedLayout(128, 8, len(block)))


def feed(
    rows: Tensor,
    row_scales: Tensor,
    experts_in: Tensor,
    in_scales: Tensor,
    experts_out: Tensor,
    out_scales: Tensor,
    weights: Tensor,
    places: Places,
    *,
    block: int = 16,
    dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """Weighted output of each assignment's expert, [assignments, hidden]; see `fits`.

    Args:
        rows: FP8 [rows, hidden], contiguous; assignments that read one stand next to each other.
        row_scales: float32, one for each row.
        experts_in: FP8 [experts, 2 inner, hidden], gates first, contiguous.
        in_scales: float32 [experts, 2 inner], or with a last axis of 1.
        experts_out: FP8 [experts, hidden, inner], contiguous.
        out_scales: float32 [experts, hidden], or with a last axis of 1.
        weights: float32, a factor for each assignment.
        places: of the assignments, by `dg_kernels.experts.place` with the same `block`, and of
            no call before.
        block: rows of a block, 16 at least.
        dtype: of the output, and of what is kept between the products.
    """
    number, hidden, inner = experts_out.shape
    assignments, programs = weights.numel(), _programs(rows.device)
    held = places.rows.shape[0]
    active = torch.empty(held, inner, dtype=dtype, device=rows.device)
    greatest_of = torch.empty(
        math.ceil(2 * inner / COLUMNS), held, dtype=torch.float32, device=rows.device
    )
    out = torch.empty(assignments, hidden, dtype=dtype, device=rows.device)
    gated = experts_in.view(number, 2, inner // 8, 8, hidden).transpose(1, 2)
    first = _descriptor(gated, [1, COLUMNS // 16, 2, 8, DEPTH])
    second = _descriptor(experts_out.view(-1, inner), [COLUMNS, DEPTH])
    _feed_kernel[(programs,)](
        rows, row_scales, first, in_scales, second, out_scales, weights, *places, active,
        greatest_of, out, assignments, held, GREATEST, LEAST_SCALE, INNER=inner, HIDDEN=hidden,
        COPIES=assignments // len(rows), ROWS=block, STAGES=_stages(hidden, inner, block),
        PROGRAMS=programs, COLUMNS=COLUMNS, DEPTH=DEPTH, SHARE=max(1, round(hidden / inner)),
        num_warps=WARPS,
    )  # fmt: skip
    return out
