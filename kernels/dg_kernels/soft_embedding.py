"""Self-conditioning from a row's likeliest tokens instead of a product over the whole vocabulary.

The reference model conditions on softmax(logits) @ embedding * scale. With the k likeliest tokens'
logits from row_stats, only k rows of the table are read, and their probabilities are renormalised,
so that what the others weighed is spread over them. `dg_kernels.reference.truncation` tells what
that costs on given logits.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK_HIDDEN = 256
"""Columns of one program; 2,816 are eleven of them."""
TOKENS_AT_ONCE = 8
"""Rows of the table that a program asks for before it adds them up."""


@triton.jit
def _soft_embedding_kernel(
    top_logits,
    top_ids,
    table,
    table_stride,
    out,
    hidden,
    scale,
    TOP: tl.constexpr,
    TOP_PADDED: tl.constexpr,
    AT_ONCE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < hidden
    slot = tl.arange(0, TOP_PADDED)
    logits = tl.load(top_logits + row * TOP + slot, mask=slot < TOP, other=float("-inf"))
    greatest = tl.max(logits, 0)
    shift = tl.where(greatest == float("-inf"), 0.0, greatest)
    total = tl.sum(tl.exp(logits - shift), 0)
    # Added up over the tokens at the end alone: a sum across warps in each turn would cost more
    # than reading the rows does.
    mixed = tl.zeros([AT_ONCE, BLOCK], tl.float32)
    for first in tl.range(0, TOP, AT_ONCE):
        some = first + tl.arange(0, AT_ONCE)
        held = some < TOP
        logit = tl.load(top_logits + row * TOP + some, mask=held, other=float("-inf"))
        weight = tl.exp(logit - shift)
        token = tl.load(top_ids + row * TOP + some, mask=held, other=0)
        # A row that weighs nothing is not read.
        vectors = tl.load(
            table + token[:, None] * table_stride + column[None, :],
            mask=(weight > 0)[:, None] & inside[None, :],
            other=0.0,
        )
        mixed += vectors.to(tl.float32) * weight[:, None]
    mixed = tl.sum(mixed, 0) * (scale / tl.where(total > 0, total, 1.0))
    tl.store(out + row * hidden + column, mixed.to(out.dtype.element_ty), mask=inside)


def soft_embedding(
    top_logits: Tensor, top_ids: Tensor, table: Tensor, *, scale: float, warps: int = 4
) -> Tensor:
    """scale * sum of p_i * table[id_i] over a row's k tokens, p being their softmax.

    Args:
        top_logits: float32 [rows, k], contiguous; -inf weighs nothing. With k = 1 the result is
            the token's own embedding, as pins want it.
        top_ids: int64 [rows, k], contiguous.
        table: embedding, float32, float16 or bfloat16 [vocab, hidden], last stride 1.
        scale: of the model's embedding, sqrt(hidden) for this family.

    Returns:
        [rows, hidden] in the table's dtype, summed in float32; 0 for a row whose tokens all weigh
        nothing.

    Raises ValueError for tensors that are not contiguous. Can be held by a CUDA graph. The full
    sum is dg_kernels.reference.full_soft_embedding, whose product is the library's.
    """
    if not (top_logits.is_contiguous() and top_ids.is_contiguous() and table.stride(1) == 1):
        raise ValueError("Logits, ids and rows of the table must be contiguous.")
    (rows, top), hidden = top_logits.shape, table.shape[1]
    out = torch.empty((rows, hidden), dtype=table.dtype, device=table.device)
    if rows == 0:
        return out
    if top == 0:
        return out.zero_()
    _soft_embedding_kernel[(rows, triton.cdiv(hidden, BLOCK_HIDDEN))](
        top_logits, top_ids, table, table.stride(0), out, hidden, scale,
        TOP=top, TOP_PADDED=triton.next_power_of_2(top), AT_ONCE=TOKENS_AT_ONCE,
        BLOCK=BLOCK_HIDDEN, num_warps=warps,
    )  # fmt: skip
    return out
