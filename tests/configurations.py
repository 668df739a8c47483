"""Settings as one source gives them."""

from __future__ import annotations

from dg_lsp.configuration import Configuration, read_settings
from dg_lsp.configuration.reading import combined


def read_configuration(given: object) -> tuple[Configuration, list[str]]:
    """What these settings make of the defaults, and a sentence for each that is wrong."""
    reading = read_settings(given)
    return combined(reading.values), reading.sentences
