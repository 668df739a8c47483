"""Log lines hold no code of people's, unless everything was asked for."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
from dg_lsp.privacy.logs import PrivateFormatter, is_news, set_level

CANARY = "Kq7vR2mZ9tW4xLp8"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a handler with our formatter writes of everything."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrivateFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)
    set_level("warning")
    logging.getLogger("dg_lsp").setLevel(logging.NOTSET)


def fail() -> None:
    try:
        raise ValueError(CANARY)
    except ValueError as error:
        raise RuntimeError(f"while at {CANARY}") from error


def log_all() -> None:
    """What libraries and we ourselves may log when something goes wrong."""
    library = logging.getLogger("pygls.protocol")
    library.error("Failed to handle request %s %s", 7, {"text": CANARY})
    library.error("Unable to read 100% of it\n" + CANARY)
    for logger in (library, logging.getLogger("asyncio"), logging.getLogger("dg_lsp.session")):
        try:
            fail()
        except RuntimeError:
            logger.exception("It failed.")


@pytest.mark.parametrize("level", ["error", "warning", "info", "debug"])
def test_messages_and_exceptions_are_outlined(written: io.StringIO, level: str) -> None:
    set_level(level)
    log_all()
    text = written.getvalue()
    assert CANARY not in text
    assert "ERROR pygls.protocol: Failed to handle request %s %s (details at" in text
    assert "ERROR pygls.protocol: Unable to read 100% of it\n" in text
    assert text.count("builtins.ValueError\n") == text.count("builtins.RuntimeError\n") == 3
    assert text.count(", in fail\n") == 6


def test_everything_is_written_when_it_was_asked_for(written: io.StringIO) -> None:
    set_level("trace")
    log_all()
    assert written.getvalue().count(CANARY) >= 8
    assert f"RuntimeError: while at {CANARY}" in written.getvalue()


def test_our_own_sentences_are_written_whole(written: io.StringIO) -> None:
    set_level("info")
    logging.getLogger("dg_lsp.session").info("The model is %s.", "ready")
    assert written.getvalue() == "INFO dg_lsp.session: The model is ready.\n"


def test_what_we_say_of_malformed_parameters_the_library_does_not_say_again() -> None:
    def record(message: str) -> logging.LogRecord:
        return logging.LogRecord("pygls.protocol", logging.ERROR, "", 0, message, ("x",), None)

    assert not is_news(record("Unable to deserialize message\n%s"))
    assert is_news(record("Failed to handle request %s"))
