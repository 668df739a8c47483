"""Document URIs: one spelling for each document, and the path that people would name."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

_PARTS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?P<rest>.*)",
    re.DOTALL,
)
_DRIVE = re.compile(r"(/?)([A-Za-z]):(?=/|$)")
_KEPT = "/:@!$&'()*+,;=~-._"
"""What RFC 3986 lets stand unescaped in a path."""


@functools.lru_cache(4096)
def normalised(uri: str) -> str:
    """One spelling for all that mean the same document.

    Clients differ in the case of drive letters and in what they escape (`C:`, `c:`, `c%3A`).
    What is no URI stays as it is.
    """
    parts = _PARTS.fullmatch(uri)
    if parts is None:
        return uri
    authority = parts["authority"]
    where = "" if authority is None else f"//{unquote(authority).lower()}"
    path = quote(_lower_drive(unquote(parts["path"])), safe=_KEPT)
    return f"{parts['scheme'].lower()}:{where}{path}{parts['rest']}"


@functools.lru_cache(4096)
def path_of(uri: str) -> str:
    """The path in a URI as people write it: `/a/b.py`, `c:/a/b.py`, `Untitled-1`."""
    parts = _PARTS.fullmatch(uri)
    if parts is None:
        return uri
    path = _lower_drive(unquote(parts["path"]))
    if _DRIVE.match(path):
        path = path.lstrip("/")
    authority = parts["authority"]
    if parts["scheme"].lower() == "file" and authority and authority.lower() != "localhost":
        return f"//{authority}{path}"
    return path


def names_path(uri: str) -> bool:
    """Whether what a URI names may be the name of a file on this machine."""
    path = path_of(uri)
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return "\0" not in path


def shown_path(uri: str, roots: Sequence[str]) -> str:
    """The path below the innermost root that holds it, else the path."""
    path, root = path_of(uri), root_of(uri, roots)
    return path if root is None else path[len(_folder(root)) :]


def root_of(uri: str, roots: Sequence[str]) -> str | None:
    """The innermost of `roots` that holds what a URI names."""
    path = path_of(uri)
    holding = (root for root in roots if path.startswith(_folder(root)))
    return max(holding, key=lambda root: len(_folder(root)), default=None)


@functools.lru_cache(256)
def _folder(root: str) -> str:
    return path_of(root).rstrip("/") + "/"


def _lower_drive(path: str) -> str:
    drive = _DRIVE.match(path)
    return f"{drive[1]}{drive[2].lower()}:{path[drive.end() :]}" if drive else path
