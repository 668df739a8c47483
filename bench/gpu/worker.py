"""What a measurement asks vLLM's workers, by `worker_extension_cls`; ours and upstream's alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from bench.gpu.timeline import Event, Timeline, core_of_this_process

IDLE = "nothing, until "
PAGE = 32
"""Of keys that a comparison makes."""
IDLE_MICROSECONDS = 4.0
"""A gap that is longer than from one kernel of a graph to the next."""


class GpuWorker:
    """Methods for AsyncLLM.collective_rpc."""

    model_runner: Any
    device: torch.device

    def realistic_weights(self) -> int:
        """Give dummy weights the sizes of a trained model; returns how many tensors changed.

        vLLM's dummy weights are uniform in +-1e-3 from one seed per size: FP8 experts that are
        mostly zero, and a router that sends every token the same way.
        """
        torch.manual_seed(0)
        model = self.model_runner.get_model()
        changed = 0
        with torch.no_grad():
            for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
                if torch.is_floating_point(tensor) and not _is_table(name):
                    changed += _refill(name, tensor)
        return changed

    def begin_profile(self) -> None:
        """Count what the GPU does from now on."""
        kind = "CUDA" if self.device.type == "cuda" else "CPU"
        activity = getattr(torch.profiler.ProfilerActivity, kind)
        self._profile = torch.profiler.profile(activities=[activity])
        self._profile.start()

    def end_profile(self) -> list[tuple[str, int, float]]:
        """Name, calls and microseconds of every kernel since, the longest first.

        Time in which the GPU had nothing to do is among them, by the kernel that it waited for.
        """
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        self._profile.stop()
        found: dict[str, list[float]] = {}
        mine = [e for e in self._profile.events() if e.device_type.name.lower() == self.device.type]
        until = 0.0
        for event in sorted(mine, key=lambda one: one.time_range.start):
            begun, ended = event.time_range.start, event.time_range.end
            if until and begun - until > IDLE_MICROSECONDS:
                found.setdefault(f"{IDLE}{event.name}", []).append(begun - until)
            found.setdefault(event.name, []).append(ended - begun)
            until = max(until, ended)
        sums = [(name, len(times), sum(times)) for name, times in found.items()]
        return sorted(sums, key=lambda one: -one[2])

    def begin_timeline(self) -> int:
        """See bench.gpu.timeline."""
        self._timeline = Timeline()
        return self._timeline.begin()

    def end_timeline(self) -> list[Event]:
        """What the core did since."""
        return self._timeline.end()

    def join_canvases(self, wanted: bool) -> bool:
        """Let canvases come along with the ends of their prompts from now on, or not; returns
        whether there is a scheduler here to tell."""
        core = core_of_this_process()
        if core is not None:
            core.scheduler._joins = wanted
        return core is not None

    def experts_touched(self, rows: int) -> list[int]:
        """By layer, the experts that so many random hidden states are sent to."""
        torch.manual_seed(0)
        touched: list[int] = []
        for module in self.model_runner.get_model().modules():
            if type(module).__name__ == "Gemma4Router":
                dtype = next(module.parameters()).dtype
                size = self.model_runner.model_config.hf_text_config.hidden_size
                hidden = torch.randn(rows, size, device=self.device, dtype=dtype)
                chosen = module(hidden).topk(8, -1).indices
                touched.append(len(chosen.unique()))
        return touched

    def compare_blocks(self, rows: int) -> list[dict[str, float]]:
        """By layer, how far a block of fewer launches is from upstream's operations, and its time.

        `error`: length of the difference over that of what the layer adds. `us`: of all layers'
        blocks in one CUDA graph, over their number. Empty where layers run as upstream has them.
        """
        from dg_engine.vllm_plugin import feed_forward
        from vllm.forward_context import set_forward_context
        from vllm.model_executor.models.gemma4 import Gemma4DecoderLayer

        from bench.gpu.kernels import median_us, off_by

        model = self.model_runner.get_model()
        layers = [m for m in model.modules() if isinstance(m, Gemma4DecoderLayer)]
        layers = [layer for layer in layers if getattr(layer, feed_forward.NAME, None)]
        torch.manual_seed(0)
        size = self.model_runner.model_config.hf_text_config.hidden_size
        given = torch.randn(2, rows, size, device=self.device, dtype=torch.bfloat16)
        found: list[dict[str, float]] = []
        with torch.inference_mode(), set_forward_context(None, self.model_runner.vllm_config):
            for layer in layers:
                name = getattr(layer, feed_forward.NAME)
                expected = _plain_block(layer, *given).float() - given[1].float()
                ours = feed_forward.feed_forward_op(*given, name).float() - given[1].float()
                found.append({"error": off_by(ours, expected)})

            def all_blocks() -> None:
                for layer in layers:
                    feed_forward.feed_forward_op(*given, getattr(layer, feed_forward.NAME))

            if layers:
                us = median_us(all_blocks) / len(layers)
                found = [one | {"us": us} for one in found]
        return found

    def compare_layers(self, rows: int) -> list[dict[str, float]]:
        """By layer that runs whole, how far its ends are from upstream's operations.

        Queries, keys and values as they lie in pages, and `handed`, what the next layer multiplies.
        """
        from dg_engine.vllm_plugin import whole_layers
        from vllm.forward_context import set_forward_context
        from vllm.model_executor.models.gemma4 import Gemma4DecoderLayer

        from bench.gpu.kernels import off_by

        model, held = self.model_runner.get_model(), whole_layers.vllm_attention
        layers = [m for m in model.modules() if isinstance(m, Gemma4DecoderLayer)]
        size = self.model_runner.model_config.hf_text_config.hidden_size
        torch.manual_seed(0)
        hidden = torch.randn(rows, size, device=self.device, dtype=torch.bfloat16)
        positions = torch.arange(rows, device=self.device) + 900
        found: list[dict[str, float]] = []
        before = held.get_attention_context
        for layer in layers:
            run = getattr(layer, whole_layers.WHOLE, None)
            if run is None:
                continue
            whole, attention = run.__self__, layer.self_attn
            heads, head = attention.num_kv_heads, attention.head_dim
            cache = hidden.new_zeros(rows // PAGE + 1, heads, PAGE, 2 * head)
            slots = torch.arange(rows, device=self.device) + 3
            held.get_attention_context = lambda _, c=cache, s=slots: (None, None, c, s)
            try:
                with (
                    torch.inference_mode(),
                    set_forward_context(None, self.model_runner.vllm_config),
                ):
                    expected = _plain_heads(attention, positions, layer.input_layernorm(hidden))
                    query = whole.heads(*whole.begin(hidden), positions)
                    pages = cache.transpose(1, 2).flatten(0, 1)[3 : 3 + rows].split(head, -1)
                    given = torch.randn_like(query).flatten(1)
                    out, multiplied, scales = whole.rest(given, hidden)
            finally:
                held.get_attention_context = before
            made = dict(zip(("query", "key", "value"), (query, *pages), strict=True))
            errors = {n: off_by(made[n], one) for n, one in zip(made, expected, strict=True)}
            if len(multiplied):
                following = layers[layers.index(layer) + 1].input_layernorm
                handed = multiplied.float() * scales
                errors["handed"] = off_by(handed, following.forward_native(out))
            found.append(errors)
        return found

    def take_weights(self, folder: str) -> int:
        """Load another checkpoint of the same sizes into the model; returns how many tensors it
        has."""
        from safetensors.torch import load_file

        weights = load_file(Path(folder) / "model.safetensors", device=str(self.device))
        self.model_runner.get_model().load_weights(weights.items())
        return len(weights)

    def requests_held(self) -> int:
        """Requests that still have a slot."""
        return self.model_runner.req_states.num_reqs


def _plain_block(layer: Any, attended: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """What Gemma4DecoderLayer does behind its attention."""
    total = layer.post_attention_layernorm(attended) + residual
    dense = layer.mlp(layer.pre_feedforward_layernorm(total))
    routed = layer.moe(layer.pre_feedforward_layernorm_2(total), layer.router(total))
    both = layer.post_feedforward_layernorm_1(dense) + layer.post_feedforward_layernorm_2(routed)
    return (layer.post_feedforward_layernorm(both) + total) * layer.layer_scalar


def _plain_heads(
    attention: Any, positions: torch.Tensor, hidden: torch.Tensor
) -> list[torch.Tensor]:
    """Queries, keys and values [rows, heads, head] as Gemma4Attention makes them."""
    sizes = [attention.q_size, attention.kv_size, attention.kv_size]
    query, key, value = attention.qkv_proj(hidden)[0].split(sizes, -1)
    heads = (len(hidden), -1, attention.head_dim)
    query = attention.q_norm.forward_native(query.reshape(heads)).flatten(1)
    key = attention.k_norm.forward_native(key.reshape(heads)).flatten(1)
    query, key = attention.rotary_emb.forward_native(positions, query, key)
    value = attention.v_norm.forward_native(value.reshape(heads))
    return [query.reshape(heads), key.reshape(heads), value]


def _is_table(name: str) -> bool:
    return any(word in name for word in ("rotary", "cos_sin", "normalizer"))


def _refill(name: str, tensor: torch.Tensor) -> bool:
    if "norm" in name or "layer_scalar" in name or name.endswith(("router.scale", "expert_scale")):
        tensor.fill_(1.0)
    elif tensor.numel() < 2:
        return False
    elif "scale" in name:
        tensor.fill_(0.02)
    elif tensor.dtype == torch.float8_e4m3fn:
        # Views may be transposed, so each matrix is copied by itself.
        for part in tensor if tensor.dim() == 3 else (tensor,):
            noise = torch.randn(part.shape, device=part.device, dtype=torch.bfloat16)
            part.copy_(noise.to(part.dtype))
    else:
        tensor.normal_(0, 1.0 if "router" in name else 0.02)
    return True
