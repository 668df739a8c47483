"""Our state and sampler behind vLLM's ModelState hooks.

What upstream's state does with embeddings, attention metadata and captured graphs is inherited, so
that most differences between releases stay there.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import logging
import zlib
from types import SimpleNamespace
from typing import Any

import torch
from dg_kernels import reference
from torch import Tensor
from torch._dynamo.exc import TorchDynamoException
from vllm.distributed.parallel_state import get_tp_group
from vllm.model_executor.models.diffusion_gemma import DiffusionGemmaModelState
from vllm.v1.outputs import LogprobsTensors
from vllm.v1.worker.gpu.sample.output import SamplerOutput

from dg_engine.model_config import softcap_of
from dg_engine.sampler import Vocabulary
from dg_engine.vllm_plugin.canvas_sampler import CanvasSampler, Embedding
from dg_engine.vllm_plugin.conditioning import Conditioning
from dg_engine.vllm_plugin.fp8_head import Fp8Head
from dg_engine.vllm_plugin.gpu_defaults import fuses_layers, joins_layers
from dg_engine.vllm_plugin.joining import LeadingRows
from dg_engine.vllm_plugin.options import CONDITIONING_TOP_K, FP8_HEAD
from dg_engine.vllm_plugin.progress import Batch
from dg_engine.vllm_plugin.request import plain_request, read_request
from dg_engine.vllm_plugin.states import CanvasStates, Phase, Whole
from dg_engine.vllm_plugin.vocabulary import VocabularySets, vocabulary_sets

LOG = logging.getLogger(__name__)
MAX_TOP_K = 64
"""Of the kernel."""


class CanvasModelState(DiffusionGemmaModelState):
    """Keeps CanvasStates in step with vLLM's slots."""

    def __init__(
        self, vllm_config: Any, model: torch.nn.Module, encoder_cache: Any, device: torch.device
    ) -> None:
        super().__init__(vllm_config, model, encoder_cache, device)
        self._slots: dict[str, int] = {}
        self._leading = LeadingRows(self.max_num_reqs, device)
        self.states = CanvasStates(
            self.max_num_reqs,
            vllm_config.diffusion_config.canvas_length,
            self.model_config.hf_text_config.hidden_size,
            vocab_size=self.model_config.get_vocab_size(),
            device=device,
            dtype=self.model_config.dtype,
        )
        self.conditioning = Conditioning(self.states, model.self_conditioning)
        if device.type == "cuda" and not self.model_config.enforce_eager:
            self.conditioning.compile()
        # Upstream's methods ask for these two; its own states, allocated above, go here.
        self.diffusion_states = _UpstreamView(self.states)
        self.model.diffusion_states = self.diffusion_states
        if fuses_layers(vllm_config):
            from dg_engine.vllm_plugin.fused_layers import fuse

            fused = fuse(model, device, whole=joins_layers(vllm_config))
            LOG.info("%d layers run in fewer launches.", fused)

    def custom_sampler(self, sampler: Any) -> tuple[Any, Any]:
        """Our sampler in place of vLLM's; there is nothing to reject, so no rejection sampler."""
        sets = vocabulary_sets(self.model_config.model, self.gen_config)
        return _Sampler(self, sampler.req_states, canvas_sampler(self, sets)), None

    def add_request(self, req_index: int, new_req_data: Any) -> None:
        """Write all of a slot's state; a request that was preempted begins its canvas anew."""
        self._slots[new_req_data.req_id] = req_index
        args = new_req_data.sampling_params.extra_args
        request = read_request(args, self.states.canvas_length, self.model_config.get_vocab_size())
        if request is None:
            # Every rank of a tensor-parallel group must draw the same.
            seed = zlib.crc32(new_req_data.req_id.encode())
            request = plain_request(self.gen_config, self.states.canvas_length, seed)
        prefill = new_req_data.prefill_token_ids or new_req_data.prompt_token_ids
        self.states.add(req_index, request, len(prefill) - len(new_req_data.prompt_token_ids))

    def remove_request(self, req_id: str) -> None:
        """Clear the slot of a request that ended, was aborted or was preempted."""
        slot = self._slots.pop(req_id, None)
        if slot is not None:
            self.states.remove(slot)

    def knows(self, req_id: str) -> bool:
        """Whether a request is one of ours, and not a stand-in by which vLLM measures memory."""
        return req_id in self._slots

    def prepare_attn(self, input_batch: Any, *args: Any, **options: Any) -> dict[str, Any]:
        """Attention metadata; canvases that come along with their prompt's end begin here."""
        for slot, width, rows in self._leading.find(input_batch):
            self.states.begin(slot)
            input_batch.input_ids[rows].copy_(self.states.ids[slot, :width])
        metadata = super().prepare_attn(input_batch, *args, **options)
        self._leading.tell(metadata)
        return metadata

    def prepare_inputs(self, input_batch: Any, req_states: Any) -> dict[str, Any]:
        """Embeddings of all tokens; on rows that denoise, mixed with the last step's soft ones."""
        inputs = super().prepare_inputs(input_batch, req_states)
        if input_batch.num_draft_tokens == 0:
            return inputs
        self.conditioning(
            inputs["inputs_embeds"],
            input_batch.logits_indices.long(),
            input_batch.expanded_idx_mapping.long(),
            input_batch.expanded_local_pos.long(),
        )
        return inputs


class _UpstreamView:
    """The part of upstream's states that its inherited methods read."""

    step_allowed = None
    """Upstream's constrained reads; our bans are per request."""

    def __init__(self, states: CanvasStates) -> None:
        self._states = states

    @property
    def is_encoder_phase(self) -> Tensor:
        """Which slots are read causally, bool [slots]."""
        return self._states.whole[:, Whole.PHASE] != Phase.DENOISE


class _Sampler:
    """What vLLM's runner calls once per forward."""

    penalties_state = SimpleNamespace(output_bin_counts=None)
    """The runner's counts of output tokens; canvases have no penalties."""

    def __init__(self, state: CanvasModelState, req_states: Any, sampler: CanvasSampler) -> None:
        self._state = state
        self._req_states = req_states
        self._sampler = sampler

    def add_request(self, req_idx: int, *_: Any) -> None:
        """Nothing: CanvasModelState.add_request has all (0.26 passes the prompt length too)."""

    def apply_staged_writes(self) -> None:
        """Nothing is staged."""

    def __call__(
        self, logits: Tensor, input_batch: Any, draft_logits: Tensor | None = None
    ) -> SamplerOutput:
        states, count = self._state.states, input_batch.num_reqs
        slots = input_batch.idx_mapping[:count].long()
        if not self._state.knows(input_batch.req_ids[0]):
            return self._rehearse(logits, slots)
        scheduled = input_batch.cu_num_logits[: count + 1].diff().long()
        offsets = input_batch.cu_num_logits_np[:count].tolist()
        if input_batch.num_draft_tokens == 0:
            # 0.26 computes logits for the last row of each prompt, which a canvas has no use for.
            logits, scheduled = logits[:0], torch.zeros_like(scheduled)
        prompt_read = input_batch.seq_lens[:count] >= self._req_states.prefill_len.gpu[slots]
        waiting = states.whole[slots, Whole.PHASE] == Phase.PREFILL
        members = input_batch.idx_mapping_np[:count].tolist()
        rows = logits.shape[0]
        outcome = self._sampler.step(
            logits,
            Batch(
                slots,
                scheduled,
                prompt_read & waiting & (scheduled == 0),
                input_batch.expanded_idx_mapping[:rows].long(),
                input_batch.expanded_local_pos[:rows].long(),
                not states.candidate_slots.isdisjoint(members),
                not states.repeated_slots.isdisjoint(members),
            ),
        )
        self._req_states.draft_tokens[slots, : states.canvas_length] = outcome.next_ids
        found = None
        if rows:
            whole = (outcome.row_ids, outcome.row_steps, outcome.row_codes, outcome.row_settled)
            found = LogprobsTensors(
                torch.stack(whole, 1).int(),
                torch.stack((outcome.row_entropy, outcome.row_scores), 1),
                outcome.row_codes.int(),
                offsets,
            )
        return SamplerOutput(
            sampled_token_ids=outcome.emitted.int(),
            logprobs_tensors=found,
            num_nans=None,
            num_sampled=outcome.emitted_counts.int(),
            num_rejected=(scheduled - outcome.emitted_counts).int(),
        )

    def _rehearse(self, logits: Tensor, slots: Tensor) -> SamplerOutput:
        """vLLM measures memory with a batch that is none: take what a full one would."""
        try:
            self._rehearse_parts(logits)
        except TorchDynamoException as error:
            LOG.warning("The sampler cannot be compiled, so its steps are slower: %s", error)
            self._sampler.leave_eager()
            self._state.conditioning.leave_eager()
            self._rehearse_parts(logits)
        nothing = torch.zeros_like(slots, dtype=torch.int32)
        return SamplerOutput(nothing[:, None], None, None, nothing, nothing)

    def _rehearse_parts(self, logits: Tensor) -> None:
        self._sampler.rehearse(logits)
        self._state.conditioning.rehearse()


def canvas_sampler(state: CanvasModelState, sets: VocabularySets) -> CanvasSampler:
    """The sampler over a model's embedding, whose vocabulary may be split over GPUs."""
    vocab_size, device = state.model_config.get_vocab_size(), state.device

    def mask(ids: frozenset[int]) -> Tensor:
        found = torch.zeros(vocab_size, dtype=torch.bool)
        found[[i for i in ids if i < vocab_size]] = True
        return found.to(device)

    sampler = CanvasSampler(
        state.states,
        Vocabulary(mask(sets.eos), mask(sets.line_breaks)),
        mask(sets.special),
        _embedding(state.model, device),
        softcap=softcap_of(state.model.final_logit_softcapping),
        conditioning_top_k=conditioning_top_k(state.vllm_config),
        row_stats=_row_stats(device),
    )
    if device.type == "cuda" and state.vllm_config.additional_config.get(FP8_HEAD):
        if get_tp_group().world_size > 1:
            raise ValueError(f"{FP8_HEAD} is for one GPU; leave it out with several.")
        # The matrix may be padded behind the vocabulary.
        state.model.fp8_head = Fp8Head(state.model.lm_head.weight[:vocab_size])
    if device.type == "cuda" and not state.model_config.enforce_eager:
        sampler.compile()
    return sampler


def conditioning_top_k(vllm_config: Any) -> int:
    """See CanvasSampler; from vLLM's `additional_config`, ValueError where it is not 0 to 64."""
    asked = vllm_config.additional_config.get(CONDITIONING_TOP_K, 0)
    if not isinstance(asked, int) or not 0 <= asked <= MAX_TOP_K:
        raise ValueError(f"{CONDITIONING_TOP_K} is {asked!r}; give 0 to {MAX_TOP_K}.")
    return asked


def _row_stats(device: torch.device) -> Any:
    """The kernel on a GPU, its reference elsewhere."""
    if device.type != "cuda":
        return reference.row_stats
    from dg_kernels.row_stats import row_stats

    def fused(logits: Tensor, *args: Any, **options: Any) -> reference.RowStats:
        # The chip's own tanh is finer than bfloat16, and coarser than float32.
        fast = logits.dtype != torch.float32
        return row_stats(logits, *args, fast_tanh=fast, **options)

    return fused


def _embedding(model: Any, device: torch.device) -> Embedding:
    """A model's embedding; each GPU of a tensor-parallel group adds its part of the vocabulary."""
    table, normalizer = model.model.embed_tokens, model.model.normalizer
    shard, group = table.shard_indices, get_tp_group()
    start, end = shard.org_vocab_start_index, shard.org_vocab_end_index
    kernel, scale = None, float(normalizer)
    if device.type == "cuda" and group.world_size == 1:
        from dg_kernels.soft_embedding import soft_embedding as kernel

    def joined(part: Tensor) -> Tensor:
        return (group.all_reduce(part) if group.world_size > 1 else part) * normalizer

    def of_probabilities(probabilities: Tensor) -> Tensor:
        weight = table.weight
        part = probabilities[:, start:end].to(weight.dtype)
        return joined(part @ weight[: part.shape[1]])

    def of_tops(logits: Tensor, ids: Tensor) -> Tensor:
        if kernel is not None:
            return kernel(logits, ids, table.weight, scale=scale)
        local = ids - start
        weights = torch.softmax(logits, -1).masked_fill((local < 0) | (ids >= end), 0.0)
        vectors = table.weight[local.clamp(0, end - start - 1)]
        return joined(torch.einsum("rk,rkh->rh", weights.to(vectors.dtype), vectors))

    return Embedding(model.model.embed_input_ids, of_probabilities, of_tops)
