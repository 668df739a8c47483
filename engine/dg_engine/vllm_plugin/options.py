"""Keys of vLLM's `additional_config` that are ours: the engine sets them and the plugin reads them.

Whoever starts vLLM by hand gives them with `--additional-config` (docs/gpu.md). Nothing is imported
here, for the engine's process and vLLM's both read it.
"""

CONDITIONING_TOP_K = "dg_conditioning_top_k"
"""Tokens that a step tells the next one of, 0 for all: see CanvasSampler."""
FP8_HEAD = "dg_fp8_head"
"""Whether logits come of FP8 products: see Fp8Head."""
FUSED_LAYERS = "dg_fused_layers"
"""False leaves the layers as upstream has them."""
JOINED_CANVASES = "dg_joined_canvases"
"""False gives the end of every prompt a forward of its own."""
