"""Documents are looked through before somebody asks; what a model may not see is not kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from dg_engine.tokenizer import Tokenizer
from dg_lsp.ahead import BLOCK_LINES, MOST_LINES, looked_through
from dg_lsp.configuration import Configuration
from dg_lsp.documents import ContentChange
from dg_lsp.engine_host import Backend
from dg_lsp.lines import Lines
from dg_lsp.methods import did_change, did_close, did_open
from dg_lsp.methods.text import DocumentId
from dg_lsp.positions import Position, Range
from dg_lsp.privacy.views import prompt_view
from dg_lsp.prompts import prompt_format_for
from dg_lsp.prompts.base import PromptFormat
from dg_lsp.prompts.settings import Budget
from dg_lsp.prompts.view import ANCHOR_LINES, view_at
from dg_lsp.session import Session
from dg_lsp.status import StatusListener

from tests.scripted_engine import ScriptedEngine
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer

KEY = ["-----BEGIN RSA PRIVATE KEY-----", "Q2FuYXJ5" * 8, "-----END RSA PRIVATE KEY-----"]
CANARY = "canary91canary"
BUDGET = Budget(prompt=120, suffix=40)


def lines_of(count: int) -> list[str]:
    return [f"value_{n} = {n} * other" for n in range(count)]


class Encoded:
    """A tokenizer's folder, and what it was given."""

    def __init__(self, folder: Path) -> None:
        self.texts: list[str] = []
        self.tokenizer = Tokenizer(folder)
        self.format: PromptFormat = prompt_format_for(self.tokenizer, folder)
        encode = self.tokenizer.encode
        self.tokenizer.encode = lambda text: self.texts.append(text) or encode(text)  # type: ignore[method-assign]

    @property
    def all(self) -> str:
        return "".join(self.texts)


@pytest.fixture
def encoded(tmp_path: Path) -> Encoded:
    return Encoded(write_tokenizer(tmp_path, FIM_TOKENS))


def test_a_first_key_at_any_place_encodes_its_own_line(encoded: Encoded) -> None:
    text = lines_of(500)
    for _ in looked_through(Lines.of("\r\n".join(text)), 0, encoded.format):
        pass
    for place in (0, 3, 250, 499):
        new = f"new_{place}"
        typed = Lines.of("\r\n".join([*text[:place], new, *text[place + 1 :]]))
        view = view_at(typed, place, len(new), path="a.py", language="python")
        encoded.texts.clear()
        encoded.format.build(prompt_view(view, BUDGET)[0], BUDGET)
        first, *others = encoded.texts
        assert first.removeprefix("\n") == new
        assert set(others) <= {text[number] for number in range(0, 500, ANCHOR_LINES)}  # no break


def test_the_lines_around_a_place_come_first(encoded: Encoded) -> None:
    text = Lines.of("\n".join(lines_of(500)))
    through = looked_through(text, 300, encoded.format)
    for _ in range(len(text.chunks) + 3):
        next(through)
    looked_at = {int(piece.split(" ")[0].rpartition("_")[2]) for piece in encoded.texts if piece}
    assert looked_at == set(range(288 - BLOCK_LINES, 288 + 2 * BLOCK_LINES))


def test_no_more_is_looked_at_than_is_remembered(encoded: Encoded) -> None:
    text = Lines.of("x\n" * (MOST_LINES + 1_000))
    blocks = sum(1 for _ in looked_through(text, 0, encoded.format)) - len(text.chunks)
    assert blocks == MOST_LINES // BLOCK_LINES


@pytest.mark.parametrize("place", [0, 40])
def test_a_secret_is_masked_before_it_is_kept(encoded: Encoded, place: int) -> None:
    text = lines_of(80)
    text[place] = f'password = "{CANARY}"'
    for _ in looked_through(Lines.of("\n".join(text)), 0, encoded.format):
        pass
    assert CANARY not in encoded.all
    assert "password" in encoded.all


def test_nothing_is_kept_of_a_text_with_a_private_key(encoded: Encoded) -> None:
    encoded.texts.clear()
    text = [*lines_of(700), *KEY, *lines_of(700)]
    for _ in looked_through(Lines.of("\n".join(text)), 0, encoded.format):
        pass
    assert encoded.texts == []


class Silent:
    """An editor that hears everything and says nothing."""

    def notify(self, method: str, params: object) -> None:
        pass

    def notify_newest(self, key: str, method: str, params: object) -> None:
        pass

    async def ask(self, method: str, params: object) -> object:
        return None


class Opened:
    """A session whose idle work runs when a test lets it."""

    def __init__(self, encoded: Encoded) -> None:
        async def factory(configuration: Configuration, listener: StatusListener) -> Backend:
            engine = ScriptedEngine(encoded.tokenizer, [""])
            return Backend(engine, encoded.tokenizer, encoded.format)

        self.encoded = encoded
        self.session = Session(Silent(), factory)

    def open(self, path: str, text: list[str]) -> str:
        self.session.engine.start(Configuration())
        uri = f"file://{path}"
        item = did_open.OpenedDocument(uri, "\n".join(text), "python")
        did_open.handle(self.session, did_open.Params(item))
        return uri

    async def rest(self) -> None:
        """Until all is looked through."""
        work = self.session.idle._work
        for _ in range(20):
            await asyncio.sleep(0)  # the model is loaded
        while work:
            key, pieces = next(iter(work.items()))
            for _ in pieces:
                pass
            work.pop(key, None)


@pytest.fixture
def opened(encoded: Encoded) -> Opened:
    return Opened(encoded)


@pytest.mark.asyncio
async def test_an_opened_document_is_looked_through(opened: Opened) -> None:
    opened.open("/project/a.py", lines_of(100))
    await opened.rest()
    assert "value_99 = " in opened.encoded.all


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/project/.env", "/project/id_rsa", "/project/server.pem"])
async def test_an_excluded_document_is_not(opened: Opened, path: str) -> None:
    opened.open(path, lines_of(100))
    await opened.rest()
    assert "value_" not in opened.encoded.all


@pytest.mark.asyncio
async def test_a_switched_off_server_looks_at_nothing(opened: Opened) -> None:
    opened.session.settings.set_client({"enabled": False})
    opened.open("/project/a.py", lines_of(100))
    await opened.rest()
    assert "value_" not in opened.encoded.all


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["close", "exclude"])
async def test_what_ends_before_it_is_looked_through_is_left(opened: Opened, end: str) -> None:
    uri = opened.open("/project/a.py", lines_of(100))
    for _ in range(20):
        await asyncio.sleep(0)
    assert uri in opened.session.idle
    if end == "close":
        did_close.handle(opened.session, did_close.Params(DocumentId(uri)))
    else:
        await opened.session.set_client_settings({"exclude": ["*.py"]})
    await opened.rest()
    assert "value_" not in opened.encoded.all


@pytest.mark.asyncio
@pytest.mark.parametrize(("count", "looked_at"), [(1, False), (40, True)])
async def test_many_new_lines_are_looked_through(
    opened: Opened, count: int, looked_at: bool
) -> None:
    uri = opened.open("/project/a.py", lines_of(20))
    await opened.rest()
    here = Position(3, 0)
    change = ContentChange("pasted = 1\n" * count, Range(here, here))
    did_change.handle(opened.session, did_change.Params(DocumentId(uri), [change]))
    await opened.rest()
    assert ("pasted" in opened.encoded.all) is looked_at
