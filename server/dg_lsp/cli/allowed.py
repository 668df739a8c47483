"""The text of a file that a command may work on."""

from __future__ import annotations

from pathlib import Path

from dg_lsp.cli.errors import CliError
from dg_lsp.cli.place import read_text
from dg_lsp.cli.settings import settings_in


def read_allowed(path: Path) -> str:
    """As `read_text`; raises CliError, too, for a file that is to be left alone.

    Below the working folder its ignore files count; elsewhere those of the file's own folder and
    of the repository around it, for the file was named.
    """
    text = read_text(path)

    from dg_lsp.privacy.gate import Gate

    named = path.absolute()
    here = Path.cwd()
    root = here if named.is_relative_to(here) else named.parent
    privacy = settings_in(root).of(root.as_uri()).privacy
    decision = Gate([root.as_uri()], privacy).may_complete(named.as_uri())
    if not decision.allowed:
        raise CliError(decision.reason)
    return text
