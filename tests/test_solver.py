"""Jobs solved on a small random model: candidates, judge, prefix reuse, deadlines, blocks."""

from __future__ import annotations

import itertools

import msgspec
import pytest
import torch
from dg_engine.candidates import batch_of, rows_of
from dg_engine.job import (
    DoneKind,
    JobError,
    Judge,
    JudgeKind,
    Rule,
    Stop,
    StopKind,
)
from dg_engine.solver import ENCODE_CHUNK

from tests.engine_fixtures import job, load_tiny, solve

PINS = list(range(60, 68))


@pytest.fixture(scope="module")
def loaded():
    return load_tiny()


def test_the_last_frame_alone_is_done_and_steps_count_up(loaded):
    frames = solve(loaded, job(max_steps=3))
    assert [f.step for f in frames] == [1, 2, 3]
    assert [f.done is None for f in frames] == [True, True, False]
    assert frames[-1].done.kind is DoneKind.MAX_STEPS


def test_pins_stand_in_every_frame(loaded):
    for rule in Rule:
        for frame in solve(loaded, job(rule=rule, max_steps=4)):
            assert all(ids[8:] == PINS for ids in frame.ids)


def test_the_same_seed_gives_the_same_answer_and_another_one_another(loaded):
    open_canvas = {"canvas": [0] * 16, "roles": bytes(16), "rule": Rule.ENTROPY_BOUND}
    answers = [solve(loaded, job(seed=s, **open_canvas))[-1].ids for s in (1, 1, 2)]
    assert answers[0] == answers[1] != answers[2]


def test_an_answer_does_not_depend_on_what_was_cached(loaded):
    prompt = list(range(100, 130))
    fresh = solve(load_tiny(), job(prompt=prompt))[-1]
    solve(loaded, job(prompt=[*prompt[:25], 9, 9]))
    again = solve(loaded, job(prompt=prompt))[-1]
    assert fresh.cached_tokens == 0
    assert again.cached_tokens == 25
    assert again.ids == fresh.ids


def test_a_repeated_prompt_encodes_its_last_token_only(loaded):
    solve(loaded, job(prompt=[*range(7, 30)]))
    assert solve(loaded, job(prompt=[*range(7, 30)]))[-1].cached_tokens == 22


def test_what_a_cancelled_job_read_of_its_prompt_is_not_read_again(loaded):
    prompt = [40 + n % 50 for n in range(ENCODE_CHUNK + 30)]
    with torch.inference_mode():
        cancelled = loaded.solver.run(job(prompt=prompt), loaded.solver.clock())
        next(cancelled)  # one forward
        cancelled.close()
    typed = solve(loaded, job(prompt=[*prompt, 30]))[-1]
    assert typed.cached_tokens == ENCODE_CHUNK
    assert typed.ids == solve(load_tiny(), job(prompt=[*prompt, 30]))[-1].ids


def test_special_tokens_and_line_breaks_are_not_proposed(loaded):
    newline = next(iter(loaded.solver.line_breaks))
    for seed in range(4):
        fields = {"single_line": True, "may_end": False, "rule": Rule.ENTROPY_BOUND, "seed": seed}
        (ids,) = solve(loaded, job(**fields))[-1].ids
        assert not set(ids[:8]) & {0, 1, 2, 3, 4, 5, 6, newline}


def test_each_width_moves_the_pins_along(loaded):
    rows = rows_of(job(canvas=[0, *range(60, 75)], roles=bytes([0] + [2] * 15), widths=[1, 4]), 16)
    assert [row.given for row in rows] == [[0, *range(60, 75)], [0] * 4 + list(range(60, 72))]
    assert [(row.start, row.stop) for row in rows] == [(0, 1), (0, 4)]


def test_a_canvas_at_the_end_of_a_file_is_narrower_and_padding_is_pinned():
    short = job(canvas=[0, 60], roles=bytes([0, 2]), widths=[1, 5])
    batch = batch_of(rows_of(short, 16), torch.device("cpu"))
    assert batch.given.tolist() == [[0, 60, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert batch.lengths is not None
    assert batch.lengths.tolist() == [2, 5]
    assert batch.roles[0].tolist() == [0, 2, 2, 2, 2]


def test_raced_widths_come_back_best_first_and_distinct(loaded):
    frames = solve(loaded, job(widths=[1, 2, 5], alternatives=3, causal_candidate=True))
    last = frames[-1]
    assert last.scores == sorted(last.scores, reverse=True) or len(set(last.widths)) > 1
    assert len({tuple(ids[:w]) for ids, w in zip(last.ids, last.widths, strict=True)}) == len(
        last.ids
    )
    assert 1 <= len(last.ids) <= 3
    assert len(frames[0].ids) == 3


def test_the_judge_ranks_by_the_causal_modes_own_log_probabilities(loaded):
    tail = [70, 71]
    judged = job(widths=[1, 3, 6], alternatives=3, judge=Judge(JudgeKind.CAUSAL, tail=tail))
    last = solve(loaded, judged)[-1]
    model = loaded.solver.model
    with torch.inference_mode():
        prompt = torch.tensor(judged.prompt)
        sums = []
        for ids, width, mean in zip(last.ids, last.widths, last.scores, strict=True):
            text = [*itertools.takewhile(lambda i: i != 1, ids[:width]), *tail]
            hidden, _ = model.encode(torch.cat((prompt, torch.tensor(text))), None)
            logits = model.logits(hidden[len(prompt) - 1 : -1])
            chosen = torch.log_softmax(logits, -1).gather(-1, torch.tensor(text)[:, None])
            sums.append(float(chosen.sum()))
            assert mean == pytest.approx(sums[-1] / len(text), abs=1e-3)
    assert sums == sorted(sums, reverse=True)


@pytest.mark.parametrize("tail", [[], [70, 71]])
def test_with_an_end_a_score_is_of_the_text_and_its_end_and_the_ranking_stays(loaded, tail):
    asked = job(widths=[1, 3, 6], alternatives=3, judge=Judge(JudgeKind.CAUSAL, tail=tail))
    plain = solve(loaded, asked)[-1]
    last = solve(
        loaded, msgspec.structs.replace(asked, judge=Judge(JudgeKind.CAUSAL, tail=tail, end=1))
    )[-1]
    assert last.ids == plain.ids
    model = loaded.solver.model
    with torch.inference_mode():
        prompt = torch.tensor(asked.prompt)
        for ids, width, mean in zip(last.ids, last.widths, last.scores, strict=True):
            text = [*itertools.takewhile(lambda i: i != 1, ids[:width]), 1]
            hidden, _ = model.encode(torch.cat((prompt, torch.tensor(text))), None)
            logits = model.logits(hidden[len(prompt) - 1 : -1])
            chosen = torch.log_softmax(logits, -1).gather(-1, torch.tensor(text)[:, None])
            assert mean == pytest.approx(float(chosen.mean()), abs=1e-3)


def test_the_greedy_line_is_the_causal_argmax(loaded):
    sure = job(causal_candidate=True, causal_sure=-1e9, widths=[4], canvas=[0], roles=b"\0")
    (frame,) = solve(loaded, sure)
    model = loaded.solver.model
    ids = list(sure.prompt)
    with torch.inference_mode():
        for token in frame.ids[0]:
            hidden, _ = model.encode(torch.tensor(ids), None)
            logits = model.logits(hidden[-1]).masked_fill(loaded.solver.banned(sure), -torch.inf)
            assert int(logits.argmax()) == token
            ids.append(token)
    assert frame.step == 0
    assert frame.done.kind is DoneKind.CONVERGED


def test_a_job_past_its_deadline_answers_with_its_best_draft(loaded):
    now = loaded.solver.clock()
    late = job(rule=Rule.ENTROPY_BOUND, max_steps=12, deadline_ms=10)
    frames = solve(loaded, late, submitted=now - 5)
    assert len(frames) == 1
    assert frames[0].done.kind is DoneKind.DEADLINE
    assert frames[0].ids[0][8:] == PINS


def test_a_canvas_without_holes_is_its_own_answer(loaded):
    (frame,) = solve(loaded, job(canvas=PINS, roles=bytes([2] * 8)))
    assert frame.ids == [PINS]
    assert frame.done.kind is DoneKind.CONVERGED


def test_several_blocks_follow_each_other_until_an_end_token(loaded):
    fields = {"canvas": [0] * 16, "roles": bytes(16), "max_steps": 2}
    open_end = solve(loaded, job(blocks=3, may_end=False, **fields))[-1]
    assert len(open_end.ids[0]) == 48
    first = solve(loaded, job(blocks=1, may_end=False, **fields))[-1]
    assert open_end.ids[0][:16] == first.ids[0]


def test_seeds_come_back_when_no_step_renoises_them(loaded):
    seeds = list(range(70, 78))
    kept = job(canvas=seeds + PINS, roles=bytes([1] * 8 + [2] * 8), max_steps=1, keep_seed_steps=1)
    assert len(solve(loaded, kept)[-1].ids[0]) == 16


def test_stopping_at_the_first_end_needs_fewer_steps_than_the_whole(loaded):
    fields = {"canvas": [0] * 16, "roles": bytes(16), "max_steps": 12, "confidence": 9.0}
    whole = solve(loaded, job(**fields))[-1].step
    ended = solve(loaded, job(stop=Stop(StopKind.FIRST_EOS), **fields))[-1].step
    assert ended <= whole


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prompt": []}, "prompt is empty"),
        ({"roles": b"\0"}, "one per id"),
        ({"canvas": [0] * 17, "roles": bytes(17)}, "takes 1 to 16"),
        ({"prompt": [5000]}, "outside the vocabulary"),
        ({"roles": bytes([9] * 16)}, "A role is none"),
        ({"widths": [40]}, "outside 1 to 16"),
        ({"roles": bytes([0, 2] * 8), "widths": [1]}, "exactly one run"),
        ({"max_steps": 0}, "at least 1"),
        ({"t_min": 0.9}, "0 < t_min <= t_max"),
        ({"blocks": 2, "alternatives": 2}, "one canvas at a time"),
    ],
)
def test_a_job_that_cannot_run_is_refused_in_one_sentence(loaded, fields, words):
    with pytest.raises(JobError, match=words) as caught:
        solve(loaded, job(**fields))
    assert "\n" not in str(caught.value)
