"""The text of a file that a command may work on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dg_lsp.cli.errors import CliError
from dg_lsp.cli.place import read_text
from dg_lsp.cli.settings import settings_in

if TYPE_CHECKING:
    from dg_lsp.privacy.gate import Gate


def read_allowed(path: Path) -> str:
    """As `read_text`; raises CliError, too, for a file that is to be left alone.

    Below the working folder its ignore files count; elsewhere those of the file's own folder and
    of the repository around it, for the file was named.
    """
    text = read_text(path)
    decision = gate_in(root_of(path)).may_complete(path.absolute().as_uri())
    if not decision.allowed:
        raise CliError(decision.reason)
    return text


def root_of(path: Path) -> Path:
    """The folder whose files belong to a named one."""
    named, here = path.absolute(), Path.cwd()
    return here if named.is_relative_to(here) else named.parent


def gate_in(root: Path) -> Gate:
    """What may be read below a folder, by its settings."""
    from dg_lsp.privacy.gate import Gate

    return Gate([root.as_uri()], settings_in(root).privacy(root.as_uri()))
