"""The diffusion state of every running request, in tensors that are allocated once.

A request owns the row of its slot. Everything that a request starts from is written when it is
added, so that nothing of the slot's former owner is left, whatever way that one went.
"""

from __future__ import annotations

import enum

import torch
from torch import Tensor

from dg_engine.job import Role, Rule, StopKind
from dg_engine.vllm_plugin.draws import noise_ids
from dg_engine.vllm_plugin.request import MAX_STABILITY, NO_END, CanvasRequest, Kind


class Phase(enum.IntEnum):
    """What the next forward does with a request."""

    PREFILL = 0
    DENOISE = 1
    COMMIT = 2
    SCORE = 3
    GREEDY = 4
    FINISHED = 5


class Whole(enum.IntEnum):
    """Columns of the whole numbers that a request is described by."""

    PHASE = 0
    FIRST_PHASE = 1
    """The phase behind the prompt."""
    WIDTH = 2
    """Positions of the present canvas."""
    START = 3
    """First position that is not PIN."""
    STEP = 4
    """Steps taken on the present canvas."""
    MAX_STEPS = 5
    """0 marks a GREEDY request that lost its place."""
    TOP_K = 6
    STABILITY = 7
    KEEP_SEED_STEPS = 8
    STOPS = 9
    """Whether less than the whole canvas is wanted."""
    LINES = 10
    """Line breaks that end the wanted region; 0 where only an end token does."""
    SEED = 11
    BLOCKS = 12
    """Blocks that are not finished yet, or NO_END."""
    BAN_SPECIAL = 13
    BAN_LINES = 14
    BAN_ENDS = 15
    LINE_ENDS = 16
    """Whether a line break ends a GREEDY request."""


class Real(enum.IntEnum):
    """Columns of the real numbers; entropies are in nats."""

    ENTROPY_BOUND = 0
    CONFIDENCE = 1
    T_MIN = 2
    T_MAX = 3


class CanvasStates:
    """State by slot; [slots, canvas] where a tensor has a canvas."""

    def __init__(
        self,
        slots: int,
        canvas_length: int,
        hidden_size: int,
        *,
        vocab_size: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        def canvas(kind: torch.dtype) -> Tensor:
            return torch.zeros(slots, canvas_length, dtype=kind, device=device)

        self.canvas_length = canvas_length
        self.vocab_size = vocab_size
        self.device = device
        self.whole = torch.zeros(slots, len(Whole), dtype=torch.int64, device=device)
        """[slots, len(Whole)]"""
        self.real = torch.ones(slots, len(Real), dtype=torch.float64, device=device)
        """[slots, len(Real)]"""
        self.ids = canvas(torch.int64)
        """Input of the next forward."""
        self.given = canvas(torch.int64)
        self.roles = canvas(torch.int64)
        self.argmax = canvas(torch.int64)
        self.history = torch.zeros(
            MAX_STABILITY, slots, canvas_length, dtype=torch.int64, device=device
        )
        """The last drafts, newest first, -1 before there are any [stability, slots, canvas]."""
        self.conditioning = torch.zeros(
            slots, canvas_length, hidden_size, dtype=dtype, device=device
        )
        """Soft embeddings of the last step [slots, canvas, hidden]."""
        self.candidate_slots: set[int] = set()
        """Slots whose rule draws candidates; known on the host, so that others skip the draw."""
        self.repeated_slots: set[int] = set()
        """Slots that may take a second step, which self-conditioning is for."""

    def add(self, slot: int, request: CanvasRequest, committed: int = 0) -> None:
        """Start a request in a slot; `committed` ids of it stand behind its prompt already.

        A request that was preempted comes back that way: its blocks so far are part of what is
        prefilled, and its next canvas starts anew. A GREEDY one has lost the token it was about to
        read, and says so at its next step.
        """
        length = self.canvas_length
        blocks, canvas, roles = request.blocks, request.canvas, request.roles
        greedy = request.kind == Kind.GREEDY
        if committed and not greedy:
            blocks -= 1 + (committed - len(canvas)) // length if blocks != NO_END else 0
            canvas, roles = [0] * length, [int(Role.HOLE)] * length
        padding = length - len(canvas)
        first = {Kind.CANVAS: Phase.DENOISE, Kind.SCORE: Phase.SCORE, Kind.GREEDY: Phase.GREEDY}
        whole = dict.fromkeys(Whole, 0) | {
            Whole.PHASE: Phase.PREFILL,
            Whole.WIDTH: len(canvas),
            Whole.START: next((i for i, role in enumerate(roles) if role != Role.PIN), 0),
            Whole.MAX_STEPS: 0 if greedy and committed else request.max_steps,
            Whole.TOP_K: request.rule == Rule.TOP_K,
            Whole.STABILITY: request.stability,
            Whole.KEEP_SEED_STEPS: request.keep_seed_steps,
            Whole.STOPS: request.stop != StopKind.WHOLE,
            Whole.LINES: _lines(request),
            Whole.SEED: request.seed,
            Whole.BLOCKS: blocks,
            Whole.BAN_SPECIAL: request.text_only,
            Whole.BAN_LINES: request.single_line and not greedy,
            Whole.BAN_ENDS: not request.may_end and not greedy,
            Whole.LINE_ENDS: request.single_line,
            Whole.FIRST_PHASE: first[Kind(request.kind)],
        }
        real = [request.entropy_bound, request.confidence, request.t_min, request.t_max]
        given = torch.tensor(canvas + [0] * padding)
        roles_given = torch.tensor(roles + [int(Role.PIN)] * padding)
        ids = given
        if whole[Whole.FIRST_PHASE] == Phase.DENOISE:
            offsets = torch.arange(length) - whole[Whole.START]
            seed, begins = torch.tensor([request.seed]), torch.zeros(1, dtype=torch.int64)
            noise = noise_ids(seed, begins, offsets, self.vocab_size)
            ids = torch.where(roles_given == int(Role.HOLE), noise, given)
        self._write(
            slot,
            {
                self.whole: torch.tensor([int(whole[column]) for column in Whole]),
                self.real: torch.tensor(real, dtype=torch.float64),
                self.given: given,
                self.roles: roles_given,
                self.ids: ids,
            },
        )
        self.history[:, slot] = -1
        self.conditioning[slot] = 0
        self.candidate_slots.discard(slot)
        self.repeated_slots.discard(slot)
        if request.kind == Kind.CANVAS:
            if request.rule != Rule.TOP_K:
                self.candidate_slots.add(slot)
            if request.max_steps > 1:
                self.repeated_slots.add(slot)

    def begin(self, slot: int) -> None:
        """Let a request whose prompt is read go over to its first phase."""
        self.whole[slot, Whole.PHASE].copy_(self.whole[slot, Whole.FIRST_PHASE])

    def remove(self, slot: int) -> None:
        """Forget the owner of a slot."""
        self.whole[slot] = 0
        self.conditioning[slot] = 0
        self.candidate_slots.discard(slot)
        self.repeated_slots.discard(slot)

    def copied(self) -> list[Tensor]:
        """What every request has come to."""
        return [tensor.clone() for tensor in self._tensors()]

    def put_back(self, copies: list[Tensor]) -> None:
        """Undo everything since `copied`."""
        for tensor, copy in zip(self._tensors(), copies, strict=True):
            tensor.copy_(copy)

    def _tensors(self) -> tuple[Tensor, ...]:
        return (
            self.whole, self.real, self.ids, self.given, self.roles, self.argmax, self.history,
            self.conditioning,
        )  # fmt: skip

    def _write(self, slot: int, rows: dict[Tensor, Tensor]) -> None:
        """Rows of one slot, all of numbers of 64 bits, in one transfer."""
        packed = torch.cat([row.view(torch.int64) for row in rows.values()])
        if self.device.type == "cuda":
            packed = packed.pin_memory()
        packed = packed.to(self.device, non_blocking=True)
        begin = 0
        for into, row in rows.items():
            part = packed[begin : begin + len(row)]
            into[slot].copy_(part.view(row.dtype))
            begin += len(row)


def _lines(request: CanvasRequest) -> int:
    if request.stop == StopKind.FIRST_LINE:
        return 1
    return request.lines if request.stop == StopKind.LINES else 0
