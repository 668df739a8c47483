"""Parameter types that several methods share; unknown fields are ignored."""

from __future__ import annotations

import msgspec


class DocumentId(msgspec.Struct, frozen=True):
    """A document, with its version where the client says which one it means."""

    uri: str
    version: int | None = None
