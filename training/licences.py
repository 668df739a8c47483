"""Decides from a wheel's METADATA whether its source may be used for training."""

import email
import re
from collections.abc import Iterable
from email.message import Message

# Only licences that ask for nothing more than a notice.
_PERMISSIVE = re.compile(
    r"""(?ix) \b (?:
        MIT | X11 | BSD | 0BSD | FreeBSD | Apache | ISC | HPND | zlib | Unlicense | NCSA
      | PSF | Python-2\.0 | Python\ Software\ Foundation | CC0 | BSL-1\.0 | Boost
      | public\ domain
    )"""
)
# One mention is enough to leave the package out, dual licences included. The
# short names need word borders: "implied" and "simple" contain "mpl".
_RESTRICTIVE = re.compile(
    r"""(?ix)
        \b[AL]?GPL | General\ Public | \bLesser\b | Affero
      | \bMPL\b | Mozilla | \bEPL\b | Eclipse | \bEUPL\b | CeCILL | \bCDDL\b | \bZPL\b
      | Proprietary | Commercial | \bBUSL\b | Business\ Source | \bSSPL\b | Elastic
      | LicenseRef-NVIDIA | NVIDIA\ (?:Proprietary|Software) | Terms\ of\ Service
      | CC-BY-NC | Non-?Commercial | Artistic
    """
)
# A License field may hold the whole licence text, and whole texts mention other
# licences ("GPL-compatible"); its first lines name the licence itself.
_FIELD_CHARACTERS = 200
_SUMMARY_CHARACTERS = 100


def parse_metadata(raw: bytes) -> Message:
    """Parses the bytes of a METADATA file."""
    return email.message_from_string(raw.decode("utf-8", "replace"))


def licence_statements(metadata: Message) -> list[str]:
    """Every statement about the licence: expression, field and classifiers, in that order."""
    field = " ".join(str(metadata.get("License") or "")[:_FIELD_CHARACTERS].split())
    classifiers = [
        str(value).removeprefix("License :: ").removeprefix("OSI Approved :: ")
        for value in metadata.get_all("Classifier") or []
        if str(value).startswith("License :: ")
    ]
    stated = [str(metadata.get("License-Expression") or ""), *classifiers, field]
    return [statement for statement in stated if statement.strip()]


def is_permissive(statements: Iterable[str]) -> bool:
    """True when a permissive licence is stated and no other kind is mentioned."""
    joined = " | ".join(statements)
    return bool(_PERMISSIVE.search(joined)) and not _RESTRICTIVE.search(joined)


def licence_summary(statements: list[str]) -> str:
    """The first permissive statement, short enough for one line of the manifest."""
    for statement in statements:
        if _PERMISSIVE.search(statement):
            name = statement.split(" Copyright ")[0]
            return name[:_SUMMARY_CHARACTERS].strip()
    return ""
