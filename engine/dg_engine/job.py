"""The records that the server and every engine share: a canvas job and the frames it yields.

Importing this module never imports torch: the language server speaks these types too.
"""

from __future__ import annotations

import enum

import msgspec


class Role(enum.IntEnum):
    """What a canvas position starts as and whether it may change."""

    HOLE = 0
    """Starts as noise."""
    SEED = 1
    """Starts as the given id and may change."""
    PIN = 2
    """Is the given id at every step and in the answer."""


class Rule(enum.StrEnum):
    """How a denoise step chooses the positions it accepts."""

    ENTROPY_BOUND = "entropy_bound"
    TOP_K = "top_k"


class JudgeKind(enum.StrEnum):
    """How raced candidates are ranked."""

    CAUSAL = "causal"
    CONFIDENCE = "confidence"
    NONE = "none"


class Judge(msgspec.Struct, frozen=True):
    """Ranks candidates of different widths.

    CAUSAL sums the causal mode's log-probabilities of candidate + `tail`, where `tail` is what
    stands after the hole in reading order. With `tail` None it is the first `suffix_tokens` pins
    behind the hole. With `end`, an end token, a row's score is how sure the causal mode is of the
    text alone: that of its tokens and of `end` behind them; the ranking stays.
    """

    kind: JudgeKind = JudgeKind.CAUSAL
    suffix_tokens: int = 4
    tail: list[int] | None = None
    end: int | None = None


class StopKind(enum.StrEnum):
    """Which part of the canvas must settle before the job may end early."""

    WHOLE = "whole"
    FIRST_EOS = "first_eos"
    FIRST_LINE = "first_line"
    LINES = "lines"


class Stop(msgspec.Struct, frozen=True):
    """The wanted region; `lines` counts line breaks and is read for LINES only."""

    kind: StopKind = StopKind.WHOLE
    lines: int = 1


class Priority(enum.IntEnum):
    """Smaller runs first."""

    INTERACTIVE = 0
    EDIT = 1
    PREFETCH = 2


class MaskRule(enum.StrEnum):
    """How sliding-window layers bound what a canvas row sees.

    ANCHORED (transformers): the last window - 1 prompt keys and the whole canvas.
    SYMMETRIC (vLLM): keys with |query - key| < window.
    """

    ANCHORED = "anchored"
    SYMMETRIC = "symmetric"


class CanvasJob(msgspec.Struct, frozen=True):
    """A prompt read causally, and a canvas to denoise behind it.

    `canvas` and `roles` have one entry per position; ids are ignored where the role is HOLE.
    With `widths`, the one run of HOLE positions is replaced by each width in turn, the positions
    behind it move along, and what passes the canvas length of the model is cropped.
    """

    id: str
    prompt: list[int]
    canvas: list[int]
    roles: bytes
    alternatives: int = 1
    widths: list[int] = []
    judge: Judge = Judge()
    causal_candidate: bool = False
    """The causal mode's greedy continuation is one candidate more (its hole ends at EOS, at the
    line's end when `single_line`, or at the canvas length)."""
    causal_sure: float | None = None
    """When the greedy continuation's mean log-probability is at least this, it is the answer and
    no canvas is denoised."""
    single_line: bool = False
    """Tokens that hold a line break are never proposed."""
    may_end: bool = True
    """Whether end tokens may be proposed, so that a hole can be shorter than it is wide."""
    text_only: bool = True
    """Special tokens other than end tokens are never proposed."""
    keep_seed_steps: int = 0
    stop: Stop = Stop()
    rule: Rule = Rule.TOP_K
    max_steps: int = 4
    entropy_bound: float = 0.1
    confidence: float = 0.005
    stability: int = 1
    t_min: float = 0.4
    t_max: float = 0.8
    seed: int | None = None
    deadline_ms: int | None = None
    """Milliseconds from submission; then the best draft is the answer."""
    priority: Priority = Priority.INTERACTIVE
    blocks: int = 1
    """Further blocks of `canvas_length` HOLE positions, each behind the committed one before."""


class DoneKind(enum.StrEnum):
    """Why a job ended."""

    CONVERGED = "converged"
    MAX_STEPS = "max_steps"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    ERROR = "error"


class Done(msgspec.Struct, frozen=True):
    """The end of a job.

    `message` is one sentence for ERROR, and else empty or what was done differently than asked.
    """

    kind: DoneKind
    message: str = ""


class Frame(msgspec.Struct, frozen=True):
    """One draft: after each denoise step, and the answer (the frame whose `done` is set).

    Rows are ordered best first; `ids[r]` is a whole argmax canvas with its pins in place.
    """

    job: str
    step: int
    ids: list[list[int]]
    widths: list[int] = []
    """Per row, how many positions of the canvas are not PIN."""
    settled: list[int] = []
    """Per row, how many positions that are not PIN did not change in the last step."""
    entropy: list[float] = []
    """Of row 0, in nats, one per position; 0 at pins."""
    scores: list[float] = []
    """Per row of the last frame: mean log-probability per judged token (CAUSAL; of the text and its
    end with `Judge.end`), or that of the argmax (CONFIDENCE, NONE)."""
    forwards: int = 0
    """Forward passes of the model so far, encoder passes included."""
    cached_tokens: int = 0
    """How many prompt tokens were found in the prefix cache."""
    ms: dict[str, float] = {}
    """Milliseconds spent by stage so far: queue, encode, steps, causal, judge."""
    done: Done | None = None

    @classmethod
    def end_of(cls, job_id: str, done: Done) -> Frame:
        """The last frame of a job that ends without a draft."""
        return cls(job=job_id, step=0, ids=[], done=done)


class EngineInfo(msgspec.Struct, frozen=True):
    """What an engine runs."""

    model: str
    canvas_length: int
    vocab_size: int
    tokenizer_digest: str
    """sha256 of tokenizer.json, hexadecimal."""
    device: str
    dtype: str
    parameters: int
    causal_predicts: bool
    """Whether the causal mode of this checkpoint predicts next tokens (measured when loaded)."""


class JobError(ValueError):
    """A job that cannot be run; its message is one sentence that says what to do."""


def check_job(job: CanvasJob, *, canvas_length: int, vocab_size: int) -> None:
    """Raise JobError unless the job can run on a model of these sizes."""
    width = len(job.canvas)
    if not job.prompt:
        raise JobError("The prompt is empty; send at least one token.")
    if len(job.roles) != width:
        raise JobError(f"The canvas has {width} ids but {len(job.roles)} roles; send one per id.")
    if not 1 <= width <= canvas_length:
        raise JobError(f"The canvas is {width} wide; this model takes 1 to {canvas_length}.")
    if any(role > Role.PIN for role in job.roles):
        raise JobError("A role is none of HOLE (0), SEED (1) and PIN (2).")
    given = (i for i, role in zip(job.canvas, job.roles, strict=True) if role != Role.HOLE)
    if any(not 0 <= i < vocab_size for i in (*job.prompt, *given)):
        raise JobError(f"A token id lies outside the vocabulary of {vocab_size}.")
    if job.widths:
        holes = [i for i, role in enumerate(job.roles) if role == Role.HOLE]
        if not holes or holes[-1] - holes[0] + 1 != len(holes):
            raise JobError("Candidate widths need exactly one run of HOLE positions.")
        room = canvas_length - holes[0]
        if any(not 1 <= w <= room for w in job.widths):
            raise JobError(f"A candidate width is outside 1 to {room}.")
    if job.alternatives < 1 or job.max_steps < 1 or job.blocks < 1:
        raise JobError("alternatives, max_steps and blocks must be at least 1.")
    if not 0 < job.t_min <= job.t_max:
        raise JobError("Temperatures need 0 < t_min <= t_max.")
    if job.blocks > 1 and (job.widths or job.alternatives > 1 or job.causal_candidate):
        raise JobError("Several blocks run one canvas at a time: no widths and no alternatives.")
