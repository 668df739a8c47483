"""What a program of dg_kernels.hopper_experts does, in three parts beside each other.

`bring` asks for weights, `hold` brings rows, `make` multiplies; each is some warps of their own,
and they wait for each other by barriers in shared memory. A program's tiles are a share of early
blocks and one of late blocks, of the first product and then of the second.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    async_copy,
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def _tile(index, share):
    """Tile of a program by its index; a share is the first early tile, how many of these, the
    first late tile, and how many there are of both."""
    return gl.where(index < share[1], share[0] + index, share[2] + index - share[1])


@gluon.jit
def _end(index, tile, share, IN_BLOCK: gl.constexpr):
    """Index behind the tiles of a block that follow each other."""
    rest = gl.where(index < share[1], share[1], share[3])
    return gl.minimum(index + (tile // IN_BLOCK + 1) * IN_BLOCK - tile, rest)


@gluon.jit
def _where(number, IN_TURNS: gl.constexpr, OUT_TURNS: gl.constexpr, SETS: gl.constexpr):
    """Where a block's rows for the second product begin: the first ones behind those of the first
    product, which may still be in use, and all others in their place."""
    side = number % SETS
    return gl.where(side == 0, IN_TURNS, (side - 1) * OUT_TURNS)


@gluon.jit
def bring(
    first_table, second_table, expert_ids, ring, there, free, in_share, out_share,
    GROUPS: gl.constexpr, ACROSS: gl.constexpr, IN_TURNS: gl.constexpr, OUT_TURNS: gl.constexpr,
    HIDDEN: gl.constexpr, STAGES: gl.constexpr, COLUMNS: gl.constexpr, DEPTH: gl.constexpr,
):  # fmt: skip
    """Ask for all weights of a program, in the order of its turns, as stages come free."""
    in_loads = in_share[3] * IN_TURNS
    for number in range(in_loads + out_share[3] * OUT_TURNS):
        stage = number % STAGES
        # A barrier that nobody has arrived at yet counts as one whose phase 1 is over.
        mbarrier.wait(free.index(stage), (number // STAGES & 1) ^ 1)
        barrier = there.index(stage)
        mbarrier.expect(barrier, COLUMNS * DEPTH)
        if number < in_loads:
            tile = _tile(number // IN_TURNS, in_share)
            expert = gl.load(expert_ids + tile // GROUPS)
            tma.async_copy_global_to_shared(
                first_table,
                [expert, tile % GROUPS * (COLUMNS // 16), 0, 0, number % IN_TURNS * DEPTH],
                barrier,
                ring.index(stage),
            )
        else:
            tile = _tile((number - in_loads) // OUT_TURNS, out_share)
            expert = gl.load(expert_ids + tile // ACROSS)
            tma.async_copy_global_to_shared(
                second_table,
                [
                    expert * HIDDEN + tile % ACROSS * COLUMNS,
                    (number - in_loads) % OUT_TURNS * DEPTH,
                ],
                barrier,
                ring.index(stage),
            )


@gluon.jit
def _product(
    ring, there, free, held, first, sums, number, TURNS: gl.constexpr, STAGES: gl.constexpr
):
    """A tile's sums over all of the depth, and the number of the turn that follows."""
    for turn in range(TURNS):
        stage = number % STAGES
        mbarrier.wait(there.index(stage), number // STAGES & 1)
        sums = warpgroup_mma(
            ring.index(stage), held.index(first + turn).permute((1, 0)), sums, is_async=True
        )
        sums = warpgroup_mma_wait(0, deps=[sums])
        mbarrier.arrive(free.index(stage))
        number += 1
    return sums, number


@gluon.jit
def hold(
    rows, row_scales, weights, sorted_ids, made_of, active, greatest_of, held, factors, shares,
    targets, brought, left, count, places, greatest, least, in_share, out_share,
    INNER: gl.constexpr, HIDDEN: gl.constexpr, COPIES: gl.constexpr, ROWS: gl.constexpr,
    GROUPS: gl.constexpr, ACROSS: gl.constexpr, IN_TURNS: gl.constexpr, OUT_TURNS: gl.constexpr,
    DEPTH: gl.constexpr, SETS: gl.constexpr,
):  # fmt: skip
    """Bring the rows of one block after another, and tell other programs which are made.

    Block number n of a program is there by `brought` n % SETS, and done with by `left` n % SETS.
    """
    fp8: gl.constexpr = rows.dtype.element_ty
    # A thread moves 16 bytes at once.
    READ: gl.constexpr = gl.BlockedLayout([1, 16], [4, 8], [gl.num_warps(), 1], [1, 0])
    ROW: gl.constexpr = gl.SliceLayout(1, READ)
    in_block = gl.arange(0, ROWS, ROW)
    in_turn = gl.arange(0, DEPTH, gl.SliceLayout(0, READ))
    number = 0
    made = 0
    before = 0
    index = 0
    while index < in_share[3]:
        tile = _tile(index, in_share)
        block = tile // GROUPS
        assignment = gl.load(sorted_ids + block * ROWS + in_block)
        wanted = assignment < count
        row = gl.where(wanted, assignment // COPIES, 0)
        factor = gl.load(row_scales + row)
        row_at = rows + (row * HIDDEN)[:, None] + in_turn[None, :]
        if number > 0:
            mbarrier.wait(left.index((number - 1) % SETS), (number - 1) // SETS & 1)
        for turn in range(IN_TURNS):
            async_copy.async_copy_global_to_shared(
                held.index(turn), row_at + turn * DEPTH, mask=wanted[:, None]
            )
        async_copy.commit_group()
        factors.index(number % SETS).store(factor)
        if number > 0:
            # What all threads wrote is seen by whoever sees the count.
            gl.atomic_add(made_of + before, made, sem="release", scope="gpu")
        async_copy.wait_group(0)
        fence_async_shared()
        gl.thread_barrier()
        mbarrier.arrive(brought.index(number % SETS))
        end = _end(index, tile, in_share, GROUPS)
        before = block
        made = end - index
        index = end
        number += 1

    first = number
    untold = number > 0
    index = 0
    while index < out_share[3]:
        tile = _tile(index, out_share)
        block = tile // ACROSS
        place = block * ROWS + in_block
        assignment = gl.load(sorted_ids + place)
        if number >= first + SETS:
            mbarrier.wait(left.index(number % SETS), (number // SETS - 1) & 1)
        # An early block waits for nobody's late rows; what waits for ours must be told of them.
        first_early = (number == first) & (index < out_share[1]) & (in_share[1] < in_share[3])
        if untold & (first_early == 0):
            mbarrier.wait(left.index((first - 1) % SETS), (first - 1) // SETS & 1)
            gl.atomic_add(made_of + before, made, sem="release", scope="gpu")
            untold = False
        arrived = gl.atomic_add(made_of + block, 0, sem="acquire", scope="gpu")
        while arrived < GROUPS:
            arrived = gl.atomic_add(made_of + block, 0, sem="acquire", scope="gpu")
        gl.thread_barrier()
        # Everything is asked for before anything is waited for.
        row_at = active + (place.to(gl.int64) * INNER)[:, None] + in_turn[None, :]
        parts = ()
        for turn in gl.static_range(OUT_TURNS):
            # Gluon unpacks no tuples.
            parts = parts + (  # noqa: RUF005
                gl.load(
                    row_at + turn * DEPTH,
                    mask=(turn * DEPTH + in_turn < INNER)[None, :] & (place >= 0)[:, None],
                    other=0.0, cache_modifier=".cg",
                ),
            )  # fmt: skip
        most = gl.full([ROWS], 0.0, gl.float32, ROW)
        for group in gl.static_range(GROUPS):
            most = gl.maximum(
                most, gl.load(greatest_of + group * places + place, cache_modifier=".cg")
            )
        share = gl.load(weights + assignment, mask=assignment < count, other=0.0)
        factor = gl.maximum(most / greatest, least)
        at = _where(number - first, IN_TURNS, OUT_TURNS, SETS)
        for turn in gl.static_range(OUT_TURNS):
            row = parts[turn].to(gl.float32)  # pyright: ignore[reportAttributeAccessIssue]
            row = row / factor[:, None]
            row = gl.minimum(gl.maximum(row, -greatest), greatest)
            held.index(at + turn).store(row.to(fp8))
        factors.index(number % SETS).store(factor)
        shares.index(number % SETS).store(share)
        targets.index(number % SETS).store(assignment)
        fence_async_shared()
        gl.thread_barrier()
        mbarrier.arrive(brought.index(number % SETS))
        index = _end(index, tile, out_share, ACROSS)
        number += 1
    if untold:
        mbarrier.wait(left.index((first - 1) % SETS), (first - 1) // SETS & 1)
        gl.atomic_add(made_of + before, made, sem="release", scope="gpu")


@gluon.jit
def make(
    first_scales, second_scales, expert_ids, active, greatest_of, out, ring, there, free, held,
    factors, shares, targets, brought, left, count, places, in_share, out_share,
    INNER: gl.constexpr, HIDDEN: gl.constexpr, ROWS: gl.constexpr, GROUPS: gl.constexpr,
    ACROSS: gl.constexpr, IN_TURNS: gl.constexpr, OUT_TURNS: gl.constexpr, STAGES: gl.constexpr,
    COLUMNS: gl.constexpr, SETS: gl.constexpr,
):  # fmt: skip
    """All tiles of a program, of the weights that `bring` asks for and the rows `hold` brings."""
    HALF: gl.constexpr = COLUMNS // 2
    WARPS: gl.constexpr = gl.num_warps()
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, ROWS, 32])
    COLUMN: gl.constexpr = gl.SliceLayout(1, SUMS)
    ROW: gl.constexpr = gl.SliceLayout(0, SUMS)
    # A thread moves 16 bytes at once.
    MADE: gl.constexpr = gl.BlockedLayout([8, 1], [8, 4], [1, WARPS], [0, 1])
    WRITE: gl.constexpr = gl.BlockedLayout([8, 1], [16, 2], [1, WARPS], [0, 1])
    kept: gl.constexpr = out.dtype.element_ty

    turns = 0
    number = -1
    before = -1
    in_tile_row = gl.arange(0, COLUMNS, COLUMN)
    # Eight gates, then the eight that they gate.
    in_half = in_tile_row // 16 * 8 + in_tile_row % 8
    in_scales = first_scales + in_tile_row // 8 % 2 * INNER + in_half
    made_row = gl.arange(0, ROWS, gl.SliceLayout(0, MADE))
    made_column = gl.arange(0, HALF, gl.SliceLayout(1, MADE))
    factor = gl.full([ROWS], 0.0, gl.float32, ROW)
    nothing = gl.full([COLUMNS, ROWS], 0.0, gl.float32, SUMS)
    expert = -1
    for index in range(in_share[3]):
        tile = _tile(index, in_share)
        block = tile // GROUPS
        column = tile % GROUPS * HALF
        if block != before:
            if number >= 0:
                gl.thread_barrier()
                mbarrier.arrive(left.index(number % SETS))
            before = block
            number += 1
            expert = gl.load(expert_ids + block)
            mbarrier.wait(brought.index(number % SETS), number // SETS & 1)
            factor = factors.index(number % SETS).load(ROW)
        scale = gl.load(
            in_scales + expert * (2 * INNER) + column, mask=column + in_half < INNER, other=0.0
        )
        sums, turns = _product(ring, there, free, held, 0, nothing, turns, IN_TURNS, STAGES)
        sums = (sums * (scale[:, None] * factor[None, :])).to(kept)
        parts = sums.reshape([HALF // 8, 2, 8, ROWS]).permute((0, 2, 3, 1))
        gate, up = parts.split()
        gate = gl.convert_layout(gate.reshape([HALF, ROWS]), MADE).to(gl.float32)
        up = gl.convert_layout(up.reshape([HALF, ROWS]), MADE).to(gl.float32)
        # As in dg_kernels.feed_forward.
        inner = 1.5957691216057308 * (gate + 0.044715 * gate * gate * gate)
        result = (gate / (1.0 + gl.exp(-inner)) * up).to(kept)
        place = block * ROWS + made_row
        gl.store(
            greatest_of + tile % GROUPS * places + place,
            gl.max(gl.abs(result.to(gl.float32)), 0),
            eviction_policy="evict_last",
        )
        gl.store(
            active + (place.to(gl.int64) * INNER)[None, :] + (column + made_column)[:, None],
            result, mask=(column + made_column < INNER)[:, None] & (place >= 0)[None, :],
            eviction_policy="evict_last",
        )  # fmt: skip
    if number >= 0:
        gl.thread_barrier()
        mbarrier.arrive(left.index(number % SETS))

    first = number + 1
    before = -1
    share = gl.full([ROWS], 0.0, gl.float32, ROW)
    to = gl.full([ROWS], 0, gl.int32, gl.SliceLayout(0, WRITE))
    write_column = gl.arange(0, COLUMNS, gl.SliceLayout(1, WRITE))
    for index in range(out_share[3]):
        tile = _tile(index, out_share)
        block = tile // ACROSS
        column = tile % ACROSS * COLUMNS
        if block != before:
            if number >= first:
                gl.thread_barrier()
                mbarrier.arrive(left.index(number % SETS))
            before = block
            number += 1
            expert = gl.load(expert_ids + block)
            mbarrier.wait(brought.index(number % SETS), number // SETS & 1)
            factor = factors.index(number % SETS).load(ROW)
            share = shares.index(number % SETS).load(ROW)
            to = targets.index(number % SETS).load(gl.SliceLayout(0, WRITE))
        scale = gl.load(
            second_scales + expert * HIDDEN + column + in_tile_row,
            mask=column + in_tile_row < HIDDEN, other=0.0,
        )  # fmt: skip
        sums, turns = _product(
            ring, there, free, held, _where(number - first, IN_TURNS, OUT_TURNS, SETS), nothing,
            turns, OUT_TURNS, STAGES,
        )  # fmt: skip
        sums = sums * (scale[:, None] * factor[None, :]) * share[None, :]
        gl.store(
            out + (to.to(gl.int64) * HIDDEN)[None, :] + (column + write_column)[:, None],
            gl.convert_layout(sums.to(kept), WRITE),
            mask=(column + write_column < HIDDEN)[:, None] & (to < count)[None, :],
            eviction_policy="evict_last",
        )
