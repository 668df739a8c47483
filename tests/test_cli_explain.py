"""`dg-lsp explain` shows what the model sees, each part by where it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_cli_errors import dg_lsp

MODEL = str(Path(__file__).parents[1] / "models" / "dg-tiny")
HEAD = "from helpers import parse\n\n\ndef main(line):\n    return parse("
MAIN = f"{HEAD}\n    print(line)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "helpers.py").write_text("def parse(line, strict=False):\n    return line\n")
    (tmp_path / "main.py").write_text(MAIN)
    return tmp_path


def explained(project: Path) -> str:
    ran = dg_lsp("explain", "main.py:5:18", "--model", MODEL, cwd=project)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_each_part_stands_under_where_it_comes_from(project: Path) -> None:
    shown = explained(project)
    assert shown.startswith("Prompt, ")
    parts = [
        "tokens: suffix, context, prefix\n── suffix: <fim_suffix>\n\n    print(line)\n",
        "── context: helpers.py\ndef parse(line, strict=False): ...\n",
        f"── prefix: <file_end>\n{HEAD}\n",
        "── <fim_middle>\n\nCanvas, ",
        " pins\n░░",
    ]
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


def test_an_excluded_file_is_not_explained_either(project: Path) -> None:
    (project / ".gitignore").write_text("helpers.py\n")
    assert "strict=False" not in explained(project)


def test_in_a_terminal_each_origin_has_its_colour() -> None:
    from dg_lsp.cli.explain import picture
    from dg_lsp.cli.session import idle_completer
    from dg_lsp.completion import Source
    from dg_lsp.prompts.view import Snippet, SnippetKind

    completer = idle_completer(Path(MODEL))
    context = (Snippet("helpers.py", "def parse(line): ...", SnippetKind.DEFINITION),)
    source = Source("main.py", "python", MAIN, context)
    text = picture(completer.explain(source, len(HEAD)), completer.tokenizer)
    styles = {text.plain[span.start : span.end].strip(): span.style for span in text.spans}
    assert styles["def parse(line): ..."] == "yellow"
    assert styles["suffix"] == "blue"
    assert next(style for part, style in styles.items() if part.startswith("from help")) == "cyan"
    assert next(style for part, style in styles.items() if part.startswith("░")) == "green"
