"""Settings: one schema, and the sources that they come from, the later one first.

The defaults; `config.toml` of the user; `.dg-lsp.toml` of a workspace folder; the editor.
"""

from dg_lsp.configuration.reading import SECTION, Reading, ours_in, read_settings
from dg_lsp.configuration.schema import Configuration, LogLevel, Scope
from dg_lsp.configuration.sources import Settings

__all__ = [
    "SECTION",
    "Configuration",
    "LogLevel",
    "Reading",
    "Scope",
    "Settings",
    "ours_in",
    "read_settings",
]
