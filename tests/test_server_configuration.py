"""A wrong setting is named in one sentence and leaves the others in force."""

from __future__ import annotations

from typing import Any

import pytest
from dg_lsp.configuration import Configuration, ours_in
from dg_lsp.prompts.settings import InfillSettings

from tests.configurations import read_configuration

PROBLEMS: list[tuple[Any, str]] = [
    ({"threads": 0}, 'The setting "threads" takes a whole number from 1 to 1024, not 0.'),
    ({"threads": "two"}, 'The setting "threads" takes a whole number from 1 to 1024, not "two".'),
    ({"model": 3}, 'The setting "model" takes the name or the folder of a model, not 3.'),
    (
        {"automaticDeadlineMs": 10},
        'The setting "automaticDeadlineMs" takes milliseconds from 50 to 600000, not 10.',
    ),
    (
        {"logLevel": "loud"},
        'The setting "logLevel" takes "error", "warning", "info", "debug" or "trace", not "loud".',
    ),
    (
        {"minConfidence": 2},
        'The setting "minConfidence" takes a number from 0 to 1, not 2.',
    ),
    ([1], "The settings must be an object, not [1]."),
]


@pytest.mark.parametrize(("given", "sentence"), PROBLEMS)
def test_a_problem_is_one_sentence(given: Any, sentence: str) -> None:
    assert read_configuration(given) == (Configuration(), [sentence])


def test_an_unknown_setting_is_told_with_the_known_ones() -> None:
    _, (sentence,) = read_configuration({"modle": "dg-tiny"})
    assert sentence.startswith('There is no setting "modle"; known are model, threads, ')


def test_good_settings_count_beside_bad_ones() -> None:
    configuration, problems = read_configuration({"threads": 2, "model": 3, "nonsense": 1})
    assert configuration == Configuration(threads=2)
    assert len(problems) == 2


@pytest.mark.parametrize("given", [None, {}, []])
def test_no_settings_are_the_defaults(given: Any) -> None:
    assert read_configuration(given) == (Configuration(), [])


@pytest.mark.parametrize("given", [{"threads": 2}, {"dg": {"threads": 2}}])
def test_settings_may_stand_in_our_section(given: Any) -> None:
    assert read_configuration(given) == (Configuration(threads=2), [])


@pytest.mark.parametrize(
    ("pushed", "ours"),
    [
        ({"dg": {"threads": 2}, "pylsp": {}}, {"threads": 2}),
        ({"threads": 2}, {"threads": 2}),
        ({"pylsp": {"threads": 9}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_settings_of_other_servers_are_left_alone(pushed: Any, ours: Any) -> None:
    assert ours_in(pushed) == ours


def test_the_longest_completion_narrows_the_race() -> None:
    defaults = InfillSettings()
    infill = Configuration(max_line_tokens=5, max_block_tokens=4).infill(defaults)
    assert infill.line.widths == [2, 4]
    assert infill.block.widths == [4]
    assert Configuration().infill(defaults) == defaults


def test_a_model_with_a_short_canvas_gets_jobs_that_fit_it() -> None:
    infill = InfillSettings().within(10)
    assert (infill.line.canvas, infill.line.widths) == (10, [2, 4, 8])
    assert (infill.block.canvas, infill.block.widths) == (10, [8])
    assert (infill.edit.canvas, infill.edit.widths) == (10, [])
    assert InfillSettings().within(256) == InfillSettings()


def test_the_deadlines_are_those_that_the_readme_names() -> None:
    configuration = Configuration()
    assert configuration.automatic_deadline_ms == 1500
    assert configuration.invoked_deadline_ms == 5000
