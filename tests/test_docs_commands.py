"""Commands that README.md and docs/ tell are run by `make docs-test`, or listed with a reason."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from dg_lsp.cli.main import app

from tests.docs.pages import ROOT, Block, Command, blocks, commands, commands_of
from tests.docs.table import LISTED, RUN
from tests.test_docs import PAGES

TOLD = commands()
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
OURS = {"bench", "training", "dg_lsp", "dg_engine", "dg_kernels"}
_INLINE = re.compile(r"`([^`\n]+)`")


def test_the_pages_tell_commands() -> None:
    assert {Command("README.md", "make demo"), Command("README.md", "dg-lsp doctor")} < set(TOLD)


@pytest.mark.parametrize("command", TOLD, ids=lambda command: f"{command.page}: {command.text}")
def test_a_command_is_run_or_listed_with_a_reason(command: Command) -> None:
    assert (command.text in RUN) != (command.text in LISTED), (
        f"{command.page} tells {command.text!r}; say in tests/docs/table.py how it is run, "
        "or why it is not"
    )


def test_nothing_is_run_or_listed_that_no_page_tells() -> None:
    assert {*RUN, *LISTED} - {command.text for command in TOLD} == set()


PAGE = """\
Text that is no code, `make nothing`.

    make one    # and why
    A=b dg-lsp two "c # d"

- an item
  that goes on

```sh
$ three --long \\
    --longer
# only a comment
```

```lua
make.four()
```

```
a picture -> of things
npm run five
```
"""


def test_commands_are_found_wherever_they_stand() -> None:
    assert [text for block in blocks(PAGE) for text in commands_of(block)] == [
        "make one",
        'A=b dg-lsp two "c # d"',
        "three --long --longer",
        "npm run five",
    ]


def test_a_block_of_an_unknown_language_is_taken_for_a_shells() -> None:
    assert list(commands_of(Block("fish", ["whatever now"]))) == ["whatever now"]


def unknown_in(command: str) -> list[str]:
    """What a command names that there is not: a target, a subcommand, an option, a module."""
    try:
        words = shlex.split(command)
    except ValueError:
        return []
    match words:
        case ["make", *named]:
            return [
                word for word in named if re.fullmatch(r"[a-z-]+", word) and word not in TARGETS
            ]
        case ["dg-lsp", *rest]:
            return _unknown_to_cli(rest)
        case [python, "-m", module, *_] if python.endswith("python"):
            return [module] if module.partition(".")[0] in OURS and not _is_there(module) else []
        case _:
            return []


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package around it
        return False


def _unknown_to_cli(words: list[str]) -> list[str]:
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        found = command.commands.get(words[0])
        if found is None:
            return words[:1]
        command, words = found, words[1:]
    known = {option for parameter in command.params for option in parameter.opts}
    asked = [word.partition("=")[0] for word in words if word.startswith("--")]
    return [option for option in asked if option not in known | {"--help"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_are_named_anywhere_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    told = [command for block in blocks(text) for command in commands_of(block)]
    faults = {
        command: unknown
        for command in (*told, *_INLINE.findall(text))
        if (unknown := unknown_in(command))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("command", "unknown"),
    [
        ("make tets", ["tets"]),
        ('make test ARGS="-x"', []),
        ("dg-lsp complete app.py:1:1 --jsn", ["--jsn"]),
        ("dg-lsp model lst", ["lst"]),
        ("dg-lsp bench quality --limit 5", []),
        ("python -m bench.qualty.report", ["bench.qualty.report"]),
    ],
)
def test_what_there_is_not_is_found(command: str, unknown: list[str]) -> None:
    assert unknown_in(command) == unknown
