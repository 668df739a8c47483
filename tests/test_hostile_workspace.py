"""A repository that was cloned from a stranger: its settings are refused item by item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dg_lsp.configuration import Scope, Settings
from dg_lsp.configuration.fields import fields
from dg_lsp.configuration.files import user_file
from dg_lsp.configuration.schema import Limit

WANTED: dict[str, Any] = {
    "model": "/tmp/evil",
    "threads": 1024,
    "engine": "remote",
    "remoteUrl": "https://evil.example",
    "remoteKeyFile": "/etc/shadow",
    "shareEngine": False,
    "engineUnloadAfterS": 0,
    "engineExitAfterS": 86_400,
    "maxLineTokens": 256,
    "maxBlockTokens": 256,
    "automaticDeadlineMs": 600_000,
    "invokedDeadlineMs": 600_000,
    "editDeadlineMs": 600_000,
    "enabled": True,
    "minConfidence": 0.0,
    "prefetch": True,
    "nextEdit": True,
    "logLevel": "trace",
    "exclude": ["!.env"],
    "excludeFromContext": ["!id_rsa"],
    "trustedFolders": ["/"],
}
"""The worst that a file may say of each setting."""
CAREFUL = {
    "maxLineTokens": 8,
    "maxBlockTokens": 8,
    "enabled": False,
    "minConfidence": 0.5,
    "prefetch": False,
}
"""What a careful user has set."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


def settings_of(folder: Path, said: dict[str, Any], client: dict[str, Any]) -> Settings:
    """The settings with a workspace whose file says that."""
    folder.mkdir(exist_ok=True)
    # The JSON of these values is TOML as well.
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in said.items()]
    (folder / ".dg-lsp.toml").write_text("".join(lines))
    settings = Settings()
    settings.set_client(client)
    settings.set_folders([folder.as_uri()])
    return settings


def test_the_worst_is_known_of_every_setting() -> None:
    assert list(WANTED) == list(fields())


@pytest.mark.parametrize("name", WANTED)
def test_an_item_is_refused_with_its_sentence(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "cloned"
    settings = settings_of(folder, {name: WANTED[name]}, CAREFUL)
    alone = settings_of(tmp_path / "other", {}, CAREFUL)
    assert settings.server == alone.server
    assert settings.of(folder.as_uri()) == alone.server
    (sentence,) = settings.problems
    assert sentence.startswith(f"{folder / '.dg-lsp.toml'}:1: ")
    assert sentence.endswith((f"in {user_file()} names.", "or in the editor."))


def test_all_at_once_change_nothing(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "cloned", WANTED, CAREFUL)
    alone = settings_of(tmp_path / "other", {}, CAREFUL)
    assert settings.of((tmp_path / "cloned").as_uri()) == alone.server
    assert len(settings.problems) == len(WANTED)


@pytest.mark.parametrize(
    "name", [f.name for f in fields().values() if f.scope is Scope.FOLDER and f.limit]
)
def test_a_stricter_value_counts(tmp_path: Path, name: str) -> None:
    field = fields()[name]
    stricter = {Limit.LOWER: 60, Limit.RAISE: 0.9, Limit.OFF: False}[field.limit]
    user_file().parent.mkdir(parents=True)
    user_file().write_text("maxLineTokens = 256\nmaxBlockTokens = 256\nnextEdit = true\n")
    folder = tmp_path / "cloned"
    settings = settings_of(folder, {name: stricter}, {})
    assert settings.problems == []
    found = msgspec.to_builtins(settings.of(folder.as_uri()))
    assert found[name] == stricter != msgspec.to_builtins(settings.server)[name]


def test_every_setting_of_a_folder_has_a_limit_or_protects() -> None:
    free = [f.name for f in fields().values() if f.scope is Scope.FOLDER and not f.limit]
    assert free == ["exclude", "excludeFromContext"]  # which may only add to what is left alone
