#!/usr/bin/env python3
"""Says by its exit status whether the editors can be had here, and in one sentence why not.

They are had where an earlier run has kept them, and else where Debian's packages and npm's can be
fetched: a machine without either has no editor to drive.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

PARTS = ("nvim", "terminal", "vscode")
ANSWER_SECONDS = 20


def cache() -> Path:
    """Where the set-up scripts put what they fetch."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("DG_LSP_EDITORS") or Path(home) / "dg-lsp-editors")


def missing() -> str:
    """Why the editors cannot be had, empty when they can."""
    if all((cache() / part / "ready").exists() for part in PARTS):
        return ""
    if shutil.which("apt-get") is None or os.geteuid():
        return "this is not Debian as root"
    if shutil.which("npm") is None:
        return "npm is missing (Node 20 brings it)"
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    found = subprocess.run(targets, capture_output=True, text=True, check=False).stdout.split()
    mirror = next((uri for uri in found if uri.endswith("/debian/")), "")
    if not mirror:
        return "apt knows no mirror of Debian"
    try:
        urllib.request.urlopen(f"{mirror}dists/forky/Release", timeout=ANSWER_SECONDS).close()
    except OSError as error:
        return f"the mirror of Debian does not answer ({error})"
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", f"--timeout={ANSWER_SECONDS}", "--retries=1"]
        pip += ["download", "--no-deps", "--dest", folder, "pynvim==0.6.0"]
        if subprocess.run(pip, capture_output=True, check=False).returncode:
            return "pip does not find pynvim"
    ping = ["npm", "view", "playwright-core", "version", f"--fetch-timeout={ANSWER_SECONDS}000"]
    ping += ["--fetch-retries=1"]
    answer = subprocess.run(ping, capture_output=True, text=True, check=False)
    return "" if answer.returncode == 0 else "npm's registry does not answer"


if __name__ == "__main__":
    if why := missing():
        print(f"The tests in the editors are left out: {why}.")
        sys.exit(1)
