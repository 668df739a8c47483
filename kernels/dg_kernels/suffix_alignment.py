"""How well a canvas predicts a pinned suffix at every offset: sums along diagonals.

The offset at which a free canvas already says what stands behind the hole tells the hole's length.
Only one logit per pair of position and suffix token is read, so one program an offset is enough.
"""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from dg_kernels.logits import load_tempered


@triton.jit
def _alignment_kernel(
    logits,
    canvas_stride,
    row_stride,
    inverse_temperature,
    log_sum_exp,
    suffix,
    suffix_counts,
    scores,
    canvas,
    suffix_width,
    SOFTCAP: tl.constexpr,
    FAST: tl.constexpr,
    SUFFIX_PADDED: tl.constexpr,
):
    offset = tl.program_id(0)
    which = tl.program_id(1).to(tl.int64)
    index = tl.arange(0, SUFFIX_PADDED)
    position = offset + index
    counted = (index < tl.load(suffix_counts + which)) & (position < canvas)
    row = which * canvas + position
    token = tl.load(suffix + which * suffix_width + index, mask=counted, other=0)
    scale = tl.load(inverse_temperature + row, mask=counted, other=1.0)
    x = load_tempered(
        logits + which * canvas_stride, position * row_stride + token, counted, scale,
        logits, 0, SOFTCAP, False, FAST,
    )  # fmt: skip
    total = tl.load(log_sum_exp + row, mask=counted, other=0.0)
    # A row without any token has -inf for both.
    scored = tl.where(x == float("-inf"), x, x - total)
    score = tl.sum(tl.where(counted, scored, 0.0), 0)
    tl.store(scores + which * canvas + offset, score)


def suffix_alignment(
    logits: Tensor,
    temperature: Tensor,
    log_sum_exp: Tensor,
    suffix: Tensor,
    suffix_counts: Tensor,
    *,
    softcap: float = 0.0,
    fast_tanh: bool = False,
) -> Tensor:
    """Summed log-probability of the suffix from every offset on.

    Args:
        logits: before the softcap, float32, float16 or bfloat16 [canvases, canvas, vocab], last
            stride 1.
        temperature: float32 [canvases, canvas].
        log_sum_exp: of the tempered logits, as row_stats gives it, float32 [canvases, canvas].
        suffix: token ids, int64 [canvases, width], contiguous.
        suffix_counts: how many of them count, int32 [canvases].
        softcap: 0 for none.
        fast_tanh: see dg_kernels.logits.tanh.

    Returns:
        float32 [canvases, canvas]: entry o is the sum over j of log p(position o + j is suffix[j]),
        over those j whose position lies in the canvas, so min(count, canvas - o) terms; -inf where
        one of them is banned.

    Raises ValueError for shapes that do not fit. Can be held by a CUDA graph.
    """
    canvases, canvas, _ = logits.shape
    if logits.stride(2) != 1:
        raise ValueError("Logits must be contiguous along the vocabulary; call contiguous().")
    if not all(t.is_contiguous() for t in (temperature, log_sum_exp, suffix)):
        raise ValueError("Temperatures, log-sum-exps and the suffix must be contiguous.")
    scores = torch.zeros((canvases, canvas), dtype=torch.float32, device=logits.device)
    width = suffix.shape[1]
    if canvases == 0 or width == 0:
        return scores
    _alignment_kernel[(canvas, canvases)](
        logits, *logits.stride()[:2], 1.0 / temperature, log_sum_exp, suffix, suffix_counts, scores,
        canvas, width, SOFTCAP=softcap, FAST=fast_tanh,
        SUFFIX_PADDED=triton.next_power_of_2(width), num_warps=1,
    )  # fmt: skip
    return scores
