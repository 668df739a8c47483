"""docs/protocol.md tells of everything that the server speaks, and of nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from dg_lsp.commands.result import Result
from dg_lsp.editor import PREVIEW_METHOD, STATUS_METHOD
from dg_lsp.methods import METHODS
from dg_lsp.methods.code_action import KINDS
from dg_lsp.methods.execute_command import COMMANDS
from dg_lsp.previews import Preview
from dg_lsp.status import Report, Why

PAGE = (Path(__file__).parent.parent / "docs" / "protocol.md").read_text()
QUOTED = set(re.findall(r"`([^`\n]+)`", PAGE))


def section(name: str) -> str:
    """What stands below the heading of a command or a notification."""
    return PAGE.split(f"### `{name}`\n")[1].split("\n### ")[0].split("\n## ")[0]


@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_every_method_is_told_of(method: str) -> None:
    assert method in QUOTED


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_told_of_with_its_arguments_and_an_example(command: str) -> None:
    told = section(command)
    names = msgspec.structs.fields(COMMANDS[command].arguments)
    shown = re.findall(r"`\{([^}]*)\}`", told)
    assert {name.strip(" ?") for name in shown[0].split(",") if name.strip()} == {
        field.encode_name for field in names
    }
    optional = {name.strip(" ?") for name in shown[0].split(",") if name.strip().endswith("?")}
    assert optional <= {field.encode_name for field in names if not field.required}
    assert f'"command": "{command}"' in told


@pytest.mark.parametrize("method", [PREVIEW_METHOD, STATUS_METHOD])
def test_every_notification_of_ours_has_an_example(method: str) -> None:
    assert f"{method}" in section(method)


def test_every_field_of_a_preview_and_of_a_result_is_told_of() -> None:
    table = section(PREVIEW_METHOD)
    assert all(f"`{field}`" in table for field in Preview.__struct_fields__)
    assert all(f"`{field}`" in PAGE for field in Result.__struct_fields__)


@pytest.mark.parametrize("field", msgspec.structs.fields(Report), ids=lambda f: f.encode_name)
def test_every_field_of_the_status_is_told_of(field: msgspec.structs.FieldInfo) -> None:
    assert field.encode_name in QUOTED


@pytest.mark.parametrize("why", Why)
def test_every_reason_of_a_silence_is_told_of(why: Why) -> None:
    assert f"| `{why}` |" in PAGE


def test_every_kind_of_code_action_is_told_of() -> None:
    assert all(f"`{kind.value}`" in PAGE for kind in KINDS)


def test_no_command_is_told_of_that_is_gone() -> None:
    told = set(re.findall(r"^### `(dg\.\w+)`$", PAGE, re.MULTILINE))
    assert told == set(COMMANDS)


def test_every_link_leads_to_a_heading() -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
