"""What vLLM for the CPU needs to start; its processes inherit it."""

from __future__ import annotations

SETTINGS = {
    "TRITON_INTERPRET": "1",
    "VLLM_USE_V2_MODEL_RUNNER": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "OMP_NUM_THREADS": "2",
}
"""Environment variables; the KV cache's space is in GiB."""
