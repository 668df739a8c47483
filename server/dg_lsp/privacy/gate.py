"""The one door: asked before a file is completed in, read as context or shown to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dg_lsp.privacy import secrets
from dg_lsp.privacy.rules import Decision, PrivacySettings, Rules, Use
from dg_lsp.uris import path_of


class Gate:
    """What one workspace and its user allow; new roots or settings need a new one."""

    def __init__(
        self,
        roots: Sequence[str] = (),
        settings: PrivacySettings | None = None,
        of_roots: Mapping[str, PrivacySettings] | None = None,
    ) -> None:
        """`roots` are the URIs of the workspace's folders, some with settings of their own."""
        own = {path_of(root): found for root, found in (of_roots or {}).items()}
        self._rules = Rules([path_of(root) for root in roots], settings, of_roots=own)

    def may_complete(self, uri: str) -> Decision:
        """Whether to complete and edit in a document, which may have no file."""
        return self._rules.decide(path_of(uri), Use.COMPLETE)

    def may_read(self, path: str) -> Decision:
        """Whether the file at an absolute path may help to complete in another."""
        return self._rules.decide(path, Use.CONTEXT)

    def may_enter(self, folder: str) -> bool:
        """Whether to look for such files below an absolute folder of the workspace."""
        return self._rules.may_enter(folder)

    def masked(self, text: str) -> str:
        """Text as a model may see it: as long, secrets masked."""
        return secrets.masked(text)
