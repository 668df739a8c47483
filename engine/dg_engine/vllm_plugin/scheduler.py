"""vLLM's schedulers with canvases of any width, drafts at every step and an end without a commit.

A request of ours never ends by vLLM's own rules: the sampler says when, and what it found goes out
as the token ids of the output (see drafts.py). So the last canvas is neither committed nor cached.
"""

# vLLM is not part of the environment that types are checked in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
import time
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.request_queue import SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.request import RequestStatus

from dg_engine.vllm_plugin.compat import can_preempt, running_limit
from dg_engine.vllm_plugin.drafts import Code, Draft, pack_draft
from dg_engine.vllm_plugin.joining import join, joins_canvases
from dg_engine.vllm_plugin.register import MASK_RULE
from dg_engine.vllm_plugin.request import CanvasRequest, Kind, read_request


class _Progress:
    """What the scheduler remembers of one of our requests."""

    def __init__(self, asked: CanvasRequest) -> None:
        self.asked = asked
        self.forwards = 0
        self.cached_tokens: int | None = None
        self.steps = 0
        """Of the draft that came last."""


class CanvasScheduler(Scheduler):
    """One step at a time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._canvases: dict[str, _Progress] = {}
        self._joins = joins_canvases(self.vllm_config, os.environ.get(MASK_RULE))

    def add_request(self, request: Any) -> None:
        """Take a request in, ours or one of plain generation."""
        params = request.sampling_params
        asked = read_request(
            params.extra_args if params else None,
            self.num_spec_tokens,
            self.vllm_config.model_config.get_vocab_size(),
        )
        if asked is not None:
            self._canvases[request.request_id] = _Progress(asked)
        super().add_request(request)

    def _free_request(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self._canvases.pop(request.request_id, None)
        return super()._free_request(request, *args, **kwargs)

    def _width(self, request: Any) -> int:
        progress = self._canvases.get(request.request_id)
        if progress is None:
            return self.num_spec_tokens
        if progress.asked.kind == Kind.GREEDY or request.num_output_tokens == 0:
            return progress.asked.width
        return self.num_spec_tokens

    def update_draft_token_ids(self, draft_token_ids: Any) -> None:
        """Cut the drafts to each request's width before they are scheduled."""
        drafts = draft_token_ids.draft_token_ids
        for index, request_id in enumerate(draft_token_ids.req_ids):
            request = self.requests.get(request_id)
            if request is not None:
                drafts[index] = drafts[index][: self._width(request)]
        super().update_draft_token_ids(draft_token_ids)

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        """Plan a step; an urgent request takes the place of one that is less so."""
        self._make_room()
        for request in self.running:
            self._trim(request)
        output = super().schedule(*args, **kwargs)
        for new in output.scheduled_new_reqs:
            progress = self._canvases.get(new.req_id)
            if progress is not None and progress.cached_tokens is None:
                progress.cached_tokens = new.num_computed_tokens
        return output

    def _update_after_schedule(self, scheduler_output: Any) -> None:
        """Before vLLM notes what it has planned: canvases may come along with their prompts."""
        if self._joins:
            widths = {
                name: progress.asked.width
                for name, progress in self._canvases.items()
                if progress.asked.kind != Kind.GREEDY
            }
            join(self, scheduler_output, widths)
        super()._update_after_schedule(scheduler_output)

    def _trim(self, request: Any) -> None:
        """Placeholders of asynchronous scheduling are as wide as the served canvas."""
        width = self._width(request)
        if len(request.spec_token_ids) > width:
            request.spec_token_ids = request.spec_token_ids[:width]
        progress = self._canvases.get(request.request_id)
        if progress is None or progress.asked.blocks > 1 or progress.asked.kind == Kind.GREEDY:
            return
        in_flight = request.num_output_placeholders // width
        if progress.steps + in_flight >= progress.asked.max_steps:
            # The step that ends the request is under way. schedule() counts current_step up
            # before it compares, so this skips one call.
            request.next_decode_eligible_step = max(
                request.next_decode_eligible_step, self.current_step + 2
            )

    def _make_room(self) -> None:
        """Preempt the least urgent request when a more urgent one waits and no place is free."""
        full = len(self.running) >= running_limit(self)
        if self.policy != SchedulingPolicy.PRIORITY or not full or not self.waiting:
            return
        head = self.waiting.peek_request()
        least = max(self.running, key=lambda request: (request.priority, request.arrival_time))
        urgent = head.status == RequestStatus.WAITING and head.priority < least.priority
        if urgent and can_preempt(least):
            self.running.remove(least)
            self._preempt_request(least, time.monotonic())

    def update_from_output(
        self, scheduler_output: Any, model_runner_output: Any
    ) -> dict[int, EngineCoreOutputs]:
        """Take the drafts out of the worker's output, and end the requests that are done."""
        found, model_runner_output.logprobs = model_runner_output.logprobs, None
        for request_id in scheduler_output.num_scheduled_tokens:
            if progress := self._canvases.get(request_id):
                progress.forwards += 1
        places = {
            request_id: model_runner_output.req_id_to_index[request_id]
            for request_id in scheduler_output.scheduled_spec_decode_tokens
            if request_id in self._canvases and found is not None
        }
        clients = {request_id: self.requests[request_id].client_index for request_id in places}
        blocks = {request_id: self._block(request_id) for request_id in places}
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        for step in outputs.values():
            for output in step.outputs:
                # Ids of committed blocks are known from their drafts.
                if output.request_id in places and output.finish_reason is None:
                    output.new_token_ids = []
            step.outputs = [
                output
                for output in step.outputs
                if output.new_token_ids or output.finish_reason or output.request_id not in places
            ]
        for request_id, index in places.items():
            width = len(scheduler_output.scheduled_spec_decode_tokens[request_id])
            output = self._output(request_id, found, index, width, blocks[request_id])
            if output is not None:
                client = outputs.setdefault(clients[request_id], EngineCoreOutputs(outputs=[]))
                client.outputs.append(output)
        return outputs

    def _block(self, request_id: str) -> int:
        """See Draft.block."""
        asked = self._canvases[request_id].asked
        behind = self.requests[request_id].num_output_tokens
        if asked.kind == Kind.GREEDY or behind == 0:
            return behind
        return 1 + (behind - asked.width) // self.num_spec_tokens

    def _output(
        self, request_id: str, found: Any, index: int, width: int, block: int
    ) -> EngineCoreOutput | None:
        """The draft of one request, None where it took no step or has ended meanwhile."""
        progress = self._canvases.get(request_id)
        begin = found.cu_num_generated_tokens[index]
        rows = slice(begin, begin + width)
        ids, steps, codes, settled = found.logprob_token_ids[rows].T.tolist()
        if progress is None or codes[0] < 0:
            return None
        entropy, scores = found.logprobs[rows].T.tolist()
        code = Code(codes[0])
        if progress.asked.refused:
            code = Code.REFUSED
        draft = Draft(
            steps[0], code, settled[0], progress.forwards, progress.cached_tokens or 0,
            ids, entropy, scores, block,
        )  # fmt: skip
        progress.steps = steps[0]
        output = EngineCoreOutput(request_id=request_id, new_token_ids=pack_draft(draft))
        if code.final:
            status = RequestStatus.FINISHED_LENGTH_CAPPED
            output.finish_reason = RequestStatus.get_finished_reason(status)
            self.finish_requests(request_id, status)
        return output


class AsyncCanvasScheduler(CanvasScheduler, AsyncScheduler):
    """Plans a step while the one before still runs."""


def canvas_scheduler(vllm_config: Any, *args: Any, **kwargs: Any) -> Any:
    """The scheduler that the configuration asks for; vLLM takes it as its scheduler class."""
    asynchronous = vllm_config.scheduler_config.async_scheduling
    chosen = AsyncCanvasScheduler if asynchronous else CanvasScheduler
    return chosen(vllm_config, *args, **kwargs)
