"""What is excluded or secret reaches no prompt, no log and no status of the real server."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from dg_engine.job import DoneKind
from dg_engine.tokenizer import Tokenizer
from dg_lsp.completion import SECRET_IN_LINES, Completer, Source
from dg_lsp.configuration import Configuration
from dg_lsp.privacy.rules import PrivacySettings
from dg_lsp.prompts import prompt_format_for

from tests import server_fixtures
from tests.configurations import read_configuration
from tests.scripted_engine import ScriptedEngine
from tests.server_fixtures import CURSOR, TEXT, Clients
from tests.test_cli_errors import dg_lsp
from tests.wire_client import WireClient

clients, tiny = server_fixtures.clients, server_fixtures.tiny

CANARY = "Kq7vR2mZ9tW4xLp8"
ASSIGNMENT = f'password = "{CANARY}"\n'
MASKS = "x" * 10
NORMAL = {"kind": "Normal", "message": ""}


def workspace(root: Path) -> Path:
    root.mkdir()
    (root / ".env").write_text(f"PLAIN={CANARY}\n")
    (root / ".gitignore").write_text("ignored.py\n")
    (root / "ignored.py").write_text(f"plain = '{CANARY}'\n")
    return root


async def started(client: WireClient, root: Path, **options: Any) -> WireClient:
    await client.initialize(
        rootUri=root.as_uri(), initializationOptions={"logLevel": "debug", **options}
    )
    return client


async def asked(client: WireClient, uri: str, place: tuple[int, int]) -> list[str]:
    answer = await client.answer(client.ask_completion(*place, uri=uri))
    return [item["insertText"] for item in answer["result"]["items"]]


async def state(client: WireClient) -> dict[str, str]:
    status = await client.command("dg.status")
    return {key: status[key] for key in ("kind", "message")}


@pytest.mark.asyncio
async def test_a_secret_reaches_no_prompt_no_log_and_no_status(
    clients: Clients, tmp_path: Path
) -> None:
    root = workspace(tmp_path / "project")
    client = await started(await clients.process("a + b", stderr=subprocess.PIPE), root)
    client.on_request = lambda message: {"applied": True}
    plain = f"# {CANARY}\n{TEXT}"
    for name in (".env", "ignored.py"):
        uri = (root / name).as_uri()
        client.open(plain, uri)
        assert await asked(client, uri, (2, 11)) == []
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        edit = {"uri": uri, "range": place, "instruction": "shorten"}
        assert (await client.command("dg.edit", edit))["applied"] is False
        block = {"uri": uri, "position": {"line": 2, "character": 11}}
        assert (await client.command("dg.completeBlock", block))["applied"] is False
        actions = await client.request(
            "textDocument/codeAction",
            {"textDocument": {"uri": uri}, "range": place, "context": {"diagnostics": []}},
        )
        assert actions["result"] == []
    client.open(ASSIGNMENT, (root / "tab.py").as_uri())

    uri = (root / "app.py").as_uri()
    client.open(ASSIGNMENT + plain + ASSIGNMENT, uri)
    gone = {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}}
    client.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": uri, "version": 2},
            "contentChanges": [{"range": gone, "text": ""}],
        },
    )
    assert await asked(client, uri, (2, 11)) == ["a + b"]
    last = {"start": {"line": 5, "character": 0}, "end": {"line": 5, "character": 5}}
    wish = f"use the token='{CANARY}' here"
    await client.command("dg.edit", {"uri": uri, "range": last, "instruction": wish})
    secret = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 9}}
    refused = await client.command("dg.edit", {"uri": uri, "range": secret, "instruction": "go"})
    assert refused["reason"] == SECRET_IN_LINES

    # What goes wrong is logged, without what it went wrong with.
    client.write_raw(f'{{"jsonrpc": "2.0", "{CANARY}'.encode())
    client.notify("textDocument/didOpen", {"textDocument": {"text": CANARY}})
    client.notify("textDocument/didChange", {"textDocument": {"uri": CANARY}})
    client.notify("unheard/of", {"text": CANARY})
    await client.request("workspace/symbol", {"query": {"text": CANARY}})
    await client.request("unheard/of", {"text": CANARY})
    client.notify("test/fail", {"text": CANARY})
    assert "error" in await client.request("test/fail", {"text": CANARY})

    shown = (await client.request("test/shown", {}))["result"]
    assert len(shown) >= 2  # and perhaps one that looks ahead
    assert all("x" * len(CANARY) in job["prompt"] for job in shown)
    assert CANARY not in str(shown)
    assert CANARY not in str(client.said("didChangeStatus"))
    assert CANARY not in str(client.said("window/showMessage"))
    client.notify("exit", None)
    assert client.process.stderr is not None
    logged = await client.process.stderr.read()
    assert b"parameters of the wrong shape" in logged
    assert b"builtins.ValueError" in logged
    assert CANARY.encode() not in logged


@pytest.mark.asyncio
async def test_an_excluded_file_has_its_reason_as_the_status(
    clients: Clients, tmp_path: Path
) -> None:
    root = workspace(tmp_path / "project")
    client = await started(await clients.start("a + b"), root, exclude=["*.md"])
    reasons = {
        ".env": "`.env` is excluded by the built-in list of secret files.",
        "ignored.py": "`ignored.py` is excluded by `ignored.py` in `.gitignore`.",
        "notes.md": "`notes.md` is excluded by `*.md` in the setting exclude.",
    }
    for name, reason in reasons.items():
        uri = (root / name).as_uri()
        client.open(TEXT, uri)
        assert await asked(client, uri, CURSOR) == []
        inactive = {"kind": "Inactive", "message": reason}
        assert await state(client) == inactive
        told = {"busy": False, **inactive, "state": "ready", "model": "scripted"}
        assert client.said("didChangeStatus")[-1] == told
    allowed = (root / "app.py").as_uri()
    client.open(TEXT, allowed)
    assert await asked(client, allowed, CURSOR) == ["a + b"]
    assert await state(client) == NORMAL


@pytest.mark.asyncio
async def test_new_settings_count_at_once(clients: Clients, tmp_path: Path) -> None:
    root = workspace(tmp_path / "project")
    client = await started(await clients.start("a + b"), root)
    uri = (root / "notes.md").as_uri()
    client.open(TEXT, uri)
    assert await asked(client, uri, CURSOR) == ["a + b"]
    for globs, offered in (["*.md"], []), ([], ["a + b"]):
        client.notify("workspace/didChangeConfiguration", {"settings": {"dg": {"exclude": globs}}})
        assert await asked(client, uri, CURSOR) == offered


@pytest.mark.asyncio
async def test_a_suggestion_that_copies_a_mask_is_not_offered(tiny: Path) -> None:
    tokenizer = Tokenizer(tiny)
    engine = ScriptedEngine(tokenizer, [f'"{MASKS}"'])
    completer = Completer(engine, tokenizer, prompt_format_for(tokenizer, tiny))
    for text, insert, reason in (
        (f"{ASSIGNMENT}again = ", "", "The proposal repeats a masked secret."),
        ("first = 1\nagain = ", f'"{MASKS}"', ""),
    ):
        completion = await completer.complete(Source("a.py", "python", text), len(text))
        assert (completion.insert, completion.reason) == (insert, reason)


@pytest.mark.asyncio
async def test_an_edit_that_copies_a_mask_keeps_the_old_lines(tiny: Path) -> None:
    tokenizer = Tokenizer(tiny)
    engine = ScriptedEngine(tokenizer, [f'again = "{MASKS}"'])
    completer = Completer(engine, tokenizer, prompt_format_for(tokenizer, tiny))
    line = 'again = "zzzzzzzzzz"'
    source = Source("a.py", "python", f"{line}\n{ASSIGNMENT}")
    edit = await completer.edit(source, 1, 1, "repeat the password")
    assert (edit.new_text, edit.done) == (line, DoneKind.CONVERGED)
    assert edit.reason.startswith("The model repeated a masked secret")


@pytest.mark.asyncio
async def test_what_is_explained_is_what_is_sent(tiny: Path) -> None:
    tokenizer = Tokenizer(tiny)
    completer = Completer(
        ScriptedEngine(tokenizer, ["1"]), tokenizer, prompt_format_for(tokenizer, tiny)
    )
    text = f"{ASSIGNMENT}a = \n{ASSIGNMENT}"
    explanation = completer.explain(Source("a.py", "python", text), len(ASSIGNMENT) + 4)
    pinned = tokenizer.decode(explanation.job.canvas)
    assert CANARY not in str(explanation.sections) + pinned
    assert "x" * 8 in pinned


@pytest.mark.parametrize("command", [["complete"], ["explain"], ["edit"]])
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (".env", "dg-lsp: `.env` is excluded by the built-in list of secret files.\n"),
        ("ignored.py", "dg-lsp: `ignored.py` is excluded by `ignored.py` in `.gitignore`.\n"),
    ],
)
def test_a_command_on_an_excluded_file_ends_with_one_sentence(
    tmp_path: Path, command: list[str], name: str, sentence: str
) -> None:
    root = workspace(tmp_path / "project")
    place = [f"{name}:1-1", "shorten"] if command == ["edit"] else [f"{name}:1:1"]
    ran = dg_lsp(*command, *place, cwd=root)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", sentence)


def test_a_command_heeds_the_settings_file_of_the_folder(tmp_path: Path) -> None:
    root = workspace(tmp_path / "project")
    (root / "app.py").write_text("x = 1\n")
    (root / ".dg-lsp.toml").write_text('exclude = ["app.py"]\n')
    ran = dg_lsp("explain", "app.py:1:1", cwd=root)
    assert (
        ran.stderr
        == "dg-lsp: `app.py` is excluded by `app.py` in the setting exclude of `.dg-lsp.toml`.\n"
    )


def test_globs_are_checked_one_by_one_and_the_good_ones_count() -> None:
    configuration, problems = read_configuration({"exclude": ["*.md", "!", "[", "docs/"]})
    assert configuration.privacy == PrivacySettings(exclude=["*.md", "docs/"])
    assert problems == [
        f'The setting "exclude" takes a list of globs such as ["*.md", "docs/"]; {glob} is no glob.'
        for glob in ('"!"', '"["')
    ]


@pytest.mark.parametrize("key", ["exclude", "excludeFromContext"])
@pytest.mark.parametrize("value", ["*.md", [1], {}])
def test_globs_of_a_wrong_type_are_one_sentence(key: str, value: Any) -> None:
    configuration, (problem,) = read_configuration({key: value})
    assert configuration == Configuration()
    assert problem.startswith(
        f'The setting "{key}" takes a list of globs such as ["*.md", "docs/"], not '
    )


@pytest.mark.asyncio
async def test_no_line_of_the_log_is_written_twice(clients: Clients) -> None:
    client = await clients.process("a + b", stderr=subprocess.PIPE)
    await client.initialize(initializationOptions={"logLevel": "info", "foo": 1})
    client.open(TEXT)
    assert len(await client.complete(*CURSOR)) == 1
    assert "error" in await client.request("textDocument/hover", {"x": 1})
    assert "error" in await client.request("textDocument/inlineCompletion", {"x": 1})
    client.notify("exit", None)
    assert client.process.stderr is not None
    logged = (await client.process.stderr.read()).decode().splitlines()
    assert "INFO dg_lsp.session: The model is ready." in logged
    assert sorted(logged) == sorted(set(logged))
    assert not [line for line in logged if "pygls" in line or line != line.rstrip()]
