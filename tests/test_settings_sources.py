"""Where settings come from: each source's place, its problems by file and line, and its limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from dg_engine.choice import EngineChoice, EngineKind
from dg_lsp.configuration import Configuration, Settings
from dg_lsp.configuration.files import MAX_BYTES, read_file, user_file
from dg_lsp.configuration.watching import places_of
from dg_lsp.privacy.gate import Gate


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def say(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def settings_of(*folders: Path, client: Any = None) -> Settings:
    settings = Settings()
    settings.set_client(client)
    settings.set_folders([folder.as_uri() for folder in folders])
    return settings


def test_a_later_source_counts_more(tmp_path: Path) -> None:
    say(user_file(), "automaticDeadlineMs = 300\ninvokedDeadlineMs = 300\neditDeadlineMs = 300\n")
    folder = tmp_path / "work"
    say(folder / ".dg-lsp.toml", "invokedDeadlineMs = 200\neditDeadlineMs = 200\n")
    settings = settings_of(folder, client={"editDeadlineMs": 300})
    assert settings.problems == []
    assert settings.of(folder.as_uri()) == Configuration(
        automatic_deadline_ms=300, invoked_deadline_ms=200, edit_deadline_ms=300
    )


def test_null_of_a_client_leaves_what_a_file_says() -> None:
    say(user_file(), 'model = "mine"\n')
    assert settings_of(client={"model": None}).server.model == "mine"


def test_lists_of_all_sources_count_together(tmp_path: Path) -> None:
    say(user_file(), 'exclude = ["*.a"]\n')
    say(tmp_path / ".dg-lsp.toml", 'exclude = ["*.b"]\n')
    settings = settings_of(tmp_path, client={"exclude": ["*.c"]})
    assert settings.of(tmp_path.as_uri()).exclude == ["*.a", "*.b", "*.c"]
    assert settings.server.exclude == ["*.a", "*.c"]


def test_each_folder_has_its_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    say(one / ".dg-lsp.toml", "prefetch = false\n")
    say(two / ".dg-lsp.toml", "enabled = false\n")
    settings = settings_of(one, two)
    assert settings.of(one.as_uri()) == Configuration(prefetch=False)
    assert settings.of(two.as_uri()) == Configuration(enabled=False)
    assert settings.of(None) == Configuration()


REFUSED: list[tuple[str, str]] = [
    ('model = "other"\n', ':1: The setting "model" counts only in folders that'),
    ("\nthreads = 2\n", ':2: The setting "threads" counts only in folders that'),
    ('logLevel = "trace"\n', ':1: The setting "logLevel" counts only in folders that'),
    ('exclude = ["!.env"]\n', ':1: "!.env" would take files back, which counts only in folders'),
    (
        'excludeFromContext = [\n  "!id_rsa",\n]\n',
        ':1: "!id_rsa" would take files back, which counts only in folders',
    ),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_a_workspace_may_not_choose_the_model_or_open_files(
    tmp_path: Path, text: str, sentence: str
) -> None:
    file = say(tmp_path / "work" / ".dg-lsp.toml", text)
    settings = settings_of(file.parent)
    assert settings.server == settings.of(file.parent.as_uri()) == Configuration()
    (problem,) = settings.problems
    assert problem.startswith(f"{file}{sentence}")


@pytest.mark.parametrize("text", [text for text, _ in REFUSED])
def test_a_folder_that_the_user_trusts_may(tmp_path: Path, text: str) -> None:
    file = say(tmp_path / "work" / ".dg-lsp.toml", text)
    say(user_file(), f'trustedFolders = ["{tmp_path}"]\n')
    settings = settings_of(file.parent)
    assert settings.problems == []
    assert settings.of(file.parent.as_uri()) != Configuration(trusted_folders=[str(tmp_path)])


@pytest.mark.parametrize("trusted", [True, False])
def test_a_workspace_never_trusts_itself(tmp_path: Path, trusted: bool) -> None:
    file = say(tmp_path / "work" / ".dg-lsp.toml", 'trustedFolders = ["/"]\nmodel = "other"\n')
    settings = settings_of(
        file.parent, client={"trustedFolders": [str(file.parent)]} if trusted else None
    )
    assert settings.problems[0].startswith(f'{file}:1: The setting "trustedFolders" counts only in')
    assert (settings.server.model == "other") == trusted


@pytest.mark.parametrize(
    "text",
    ['engine = "remote"\n', 'remoteUrl = "https://evil.example"\n', 'remoteKeyFile = "/key"\n'],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_no_workspace_says_where_code_is_sent(tmp_path: Path, text: str, trusted: bool) -> None:
    file = say(tmp_path / "work" / ".dg-lsp.toml", text)
    client = {"trustedFolders": [str(tmp_path)] if trusted else []}
    settings = settings_of(file.parent, client=client)
    assert settings.server.engine_choice == settings.of(file.parent.as_uri()).engine_choice
    assert settings.server.engine_choice == EngineChoice()
    (problem,) = settings.problems
    assert "counts only in" in problem


def test_the_user_and_the_editor_choose_the_engine() -> None:
    say(user_file(), 'engine = "remote"\nremoteKeyFile = "/key"\n')
    settings = settings_of(client={"remoteUrl": "https://gpu.example"})
    assert settings.problems == []
    choice = EngineChoice(EngineKind.REMOTE, "https://gpu.example", "/key")
    assert settings.server.engine_choice == choice


def test_a_folder_that_only_looks_trusted_is_not(tmp_path: Path) -> None:
    outside = say(tmp_path / "outside" / ".dg-lsp.toml", "threads = 2\n").parent
    (tmp_path / "trusted").mkdir()
    link = tmp_path / "trusted" / "link"
    link.symlink_to(outside)
    say(user_file(), f'trustedFolders = ["{tmp_path / "trusted"}", " "]\n')
    assert settings_of(link).server.threads is None


def test_a_workspace_file_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    secret = say(tmp_path / "credentials.toml", 'threads = "hunter2"\n')
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / ".dg-lsp.toml").symlink_to(secret)
    assert settings_of(folder).problems == [
        f"{folder / '.dg-lsp.toml'} is a link out of its folder; put a file there."
    ]


def test_the_first_folder_decides_what_is_for_the_whole_server(tmp_path: Path) -> None:
    one = say(tmp_path / "one" / ".dg-lsp.toml", "threads = 1\n").parent
    two = say(tmp_path / "two" / ".dg-lsp.toml", 'threads = 2\nmodel = "m"\n').parent
    settings = settings_of(one, two, client={"trustedFolders": [str(tmp_path)]})
    assert (settings.server.threads, settings.server.model) == (1, "m")
    assert settings.of(two.as_uri()).threads == 1


WRONG: list[tuple[str, str]] = [
    ("prefetch = true\nthreads = 0\n", ":2: The setting"),
    ('exclude = [\n  "*.md",\n  "#",\n]\n\nthreads = "two"\n', ":1: The setting"),
    ('# a comment\n\n"automaticDeadlineMs" = 10\n', ":3: The setting"),
    ('x = """\nthreads = 0\n"""\n', ':1: There is no setting "x"'),
    ("threads = 2\n\n[server]\nport = 1\n", ':3: There is no setting "server"'),
    ("a.b = 1\n", ':1: There is no setting "a"'),
    ("threads 2\n", ":1, column 9: This is not TOML: Expected '='"),
    ("threads = 2\nthreads = 3\n", ":2, column 12: This is not TOML: Cannot overwrite a value"),
    ("threads = [\n", ":2: This is not TOML: "),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_what_is_wrong_with_a_file_is_told_with_its_line(
    tmp_path: Path, text: str, sentence: str
) -> None:
    file = say(tmp_path / "config.toml", text)
    assert read_file(file).reading.sentences[0].startswith(f"{file}{sentence}")


@pytest.mark.parametrize("first", ['x = "a\u2028b\x85c"\n', "prefetch = true\r\n"])
def test_lines_are_counted_as_editors_count_them(tmp_path: Path, first: str) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(f"{first}threads = 0\n".encode())
    assert f"{file}:2: " in read_file(file).reading.sentences[-1]


def test_a_file_that_is_no_file_is_told_of(tmp_path: Path) -> None:
    assert read_file(tmp_path).reading.sentences == [f"{tmp_path} cannot be read (Is a directory)."]
    os.mkfifo(tmp_path / "pipe.toml")
    assert "(it is not a file)" in read_file(tmp_path / "pipe.toml").reading.sentences[0]
    large = say(tmp_path / "large.toml", "#" * (MAX_BYTES + 1))
    assert "longer than" in read_file(large).reading.sentences[0]
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    assert "it is not UTF-8" in read_file(tmp_path / "bytes.toml").reading.sentences[0]


def test_a_file_that_does_not_exist_says_nothing(tmp_path: Path) -> None:
    assert read_file(tmp_path / "none.toml").reading.sentences == []


def test_a_file_that_breaks_leaves_what_it_said_before_in_force() -> None:
    file = say(user_file(), 'exclude = ["*.a"]\nprefetch = false\n')
    settings = settings_of()
    say(file, 'exclude = ["*.a"\n')
    settings.reload()
    assert settings.server == Configuration(exclude=["*.a"], prefetch=False)
    assert settings.problems[0].endswith("What it said before stays in force.")
    say(file, "exclude = 3\n")
    settings.reload()
    assert settings.server == Configuration(exclude=["*.a"])
    assert settings.problems[0].startswith(f'{file}:1: The setting "exclude" takes')
    file.unlink()
    settings.reload()
    assert (settings.server, settings.problems) == (Configuration(), [])


def test_what_excludes_a_file_is_told_with_the_file_that_it_stands_in(tmp_path: Path) -> None:
    users = say(user_file(), 'exclude = ["*.a", "*.e"]\n')
    own = say(tmp_path / ".dg-lsp.toml", 'exclude = ["*.b"]\nexcludeFromContext = ["*.c"]\n')
    settings = Settings()
    settings.set_client({"exclude": ["*.d", "*.e"]})
    settings.set_folders([tmp_path.as_uri()])
    privacy = settings.privacy(tmp_path.as_uri())
    assert privacy.files == {
        "exclude": {"*.a": str(users), "*.b": str(own)},  # *.e is the editor's as well
        "excludeFromContext": {"*.c": str(own)},
    }
    assert settings.privacy(None).files["exclude"] == {"*.a": str(users)}
    gate = Gate([tmp_path.as_uri()], of_roots={tmp_path.as_uri(): privacy})
    reason = gate.may_complete((tmp_path / "x.b").as_uri()).reason
    assert reason == "`x.b` is excluded by `*.b` in the setting exclude of `.dg-lsp.toml`."


@pytest.mark.parametrize("named", ["relative/folder", ""])
def test_a_relative_folder_for_configuration_is_ignored(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", named)
    assert user_file() == Path.home() / ".config" / "dg-lsp" / "config.toml"


def test_a_root_that_is_not_on_disk_has_no_file(tmp_path: Path) -> None:
    settings = Settings()
    settings.set_folders(["vscode-remote://host/project", tmp_path.as_uri()])
    assert settings.files == [user_file(), tmp_path / ".dg-lsp.toml"]


def test_the_nearest_folder_that_exists_is_watched(tmp_path: Path) -> None:
    folders, names = places_of([tmp_path / "a" / "b" / "config.toml"])
    assert folders == {tmp_path}
    assert {str(tmp_path / "a"), str(tmp_path / "a" / "b")} <= names


def test_a_link_is_watched_where_it_leads(tmp_path: Path) -> None:
    target = say(tmp_path / "dotfiles" / "dg.toml", "")
    (tmp_path / "config").mkdir()
    link = tmp_path / "config" / "config.toml"
    link.symlink_to(target)
    folders, names = places_of([link])
    assert folders == {link.parent, target.parent}
    assert {str(link), str(target)} <= names
