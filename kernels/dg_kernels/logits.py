"""From raw to tempered logits inside a kernel; dg_kernels.reference.tempered is the reference."""

# Triton is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tanh(x, FAST: tl.constexpr):
    """Hyperbolic tangent, float32; FAST is Hopper's own instruction, right to 2**-11.

    That is finer than what a bf16 logit resolves; float32 logits want the exact one.
    """
    if FAST:
        y = tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        y = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * x))
    return y


@triton.jit
def load_tempered(
    row_logits,
    ids,
    inside,
    inverse_temperature,
    classes,
    row_bans,
    SOFTCAP: tl.constexpr,
    BANS: tl.constexpr,
    FAST: tl.constexpr,
):
    """Tempered logits of `ids` in one row, float32; -inf where not `inside`, banned or -inf."""
    raw = tl.load(row_logits + ids, mask=inside, other=float("-inf")).to(tl.float32)
    if SOFTCAP > 0:
        capped = tanh(raw * (1.0 / SOFTCAP), FAST) * SOFTCAP
        x = tl.where(raw == float("-inf"), raw, capped) * inverse_temperature
    else:
        x = raw * inverse_temperature
    if BANS:
        token = tl.load(classes + ids, mask=inside, other=0)
        x = tl.where((token & row_bans) != 0, float("-inf"), x)
    return x
