"""The editors that the setup scripts install, and a session that says how it was with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.reachable import cache


class NotSetUp(Exception):
    """The editors were not installed."""


def installed(kind: str) -> Path:
    """The folder that `setup_<kind>.sh` fills; raises NotSetUp."""
    found = cache() / kind
    if not (found / "ready").is_file():
        raise NotSetUp(f"The editors are missing; run tests/editors/setup_{kind}.sh first.")
    return found


def installed_or_fail(kind: str) -> Path:
    """As `installed`; without the editors a test fails by one sentence."""
    try:
        return installed(kind)
    except NotSetUp as missing:
        why = str(missing)
    pytest.fail(why, pytrace=False)
