"""What is written from the settings' schema is what the schema says now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dg_lsp.configuration.fields import fields

from tests.test_house import load_script

ROOT = Path(__file__).parent.parent


GENERATE = load_script("generate")


@pytest.mark.parametrize("generated", GENERATE.FILES, ids=lambda g: str(g.path))
def test_a_generated_file_is_up_to_date(generated: object) -> None:
    path, text = generated  # type: ignore[misc]
    old = (ROOT / path).read_text()
    assert text(old) == old, "run: make generate"


@pytest.mark.parametrize("setting", fields())
def test_every_setting_is_told_of_everywhere(setting: str) -> None:
    manifest = json.loads((ROOT / "clients/vscode/package.json").read_text())
    server = next(p for p in manifest["contributes"]["configuration"] if p["order"] == 2)
    texts = json.loads((ROOT / "clients/vscode/package.nls.json").read_text())
    schema = json.loads((ROOT / "docs/config.schema.json").read_text())
    assert f"dgLsp.{setting}" in server["properties"]
    assert texts[f"settings.{setting}"] == schema["properties"][setting]["description"]
    for page in ("README.md", "docs/configuration.md"):
        assert f"| `{setting}` |" in (ROOT / page).read_text()


def test_a_page_without_a_place_for_the_table_is_not_written() -> None:
    with pytest.raises(SystemExit, match="has no place for the settings"):
        GENERATE.with_table("# A page\n", "| a |")


def test_the_extension_installs_the_version_of_pytorch_that_is_locked() -> None:
    lock = (ROOT / "requirements/torch.txt").read_text()
    named = json.loads((ROOT / "clients/vscode/src/pytorch.json").read_text())
    assert f"\ntorch=={named['version']} " in lock, "in clients/vscode run: npm run generate"
