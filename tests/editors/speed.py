"""From a keystroke to ghost text: what the speed tests and bench/editors.py type and time."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.editors.nvim_session import Nvim
from tests.editors.terminal import Terminal

TEXT = '''"""Numbers."""


def total(values):
    result = 0
    for value in values:
        result += value
    return result


def mean(values):
    return total(values)'''
LINES = [*TEXT.splitlines()[:-1], "    return total(values) / "]
TYPED = "largest = max(values, key=lambda value: value.score)"
PATIENT = {"automaticDeadlineMs": 20_000, "invokedDeadlineMs": 20_000}
"""A busy machine may take its time."""
LOADING_TRIES = 20
REST_SECONDS = 3.0
"""Emacs is at rest when it asks nothing for so long; lsp-mode waits for a pause of 0.6 s."""
BACKSPACE = "\x7f"


class Times(NamedTuple):
    """Seconds from key to ghost text, and how many of each passed between request and answer."""

    totals: list[float]
    servers: list[float]

    @property
    def rest(self) -> list[float]:
        """What is left without the server."""
        return [total - server for total, server in zip(self.totals, self.servers, strict=True)]


def milliseconds(seconds: Sequence[float]) -> tuple[int, int]:
    """The median and the 90th percentile, the nearest time that was measured."""
    ordered = sorted(seconds)
    tail = ordered[math.ceil(0.9 * len(ordered)) - 1]
    return round(statistics.median(ordered) * 1e3), round(tail * 1e3)


def report(what: str, times: Times) -> str:
    """One line of figures."""
    all_of_it, rest = milliseconds(times.totals), milliseconds(times.rest)
    return (
        f"{what}: median {all_of_it[0]} ms, p90 {all_of_it[1]} ms; "
        f"without the server median {rest[0]} ms, p90 {rest[1]} ms; n = {len(times.totals)}"
    )


def neovim_free(nvim: Nvim, keys: int) -> Times:
    """TEXT of the fixtures is open and the engine costs nothing: each key gets another text."""
    nvim.type("jA")
    nvim.wait(nvim.visible, "a suggestion is shown")
    nvim.record_times()
    for count in range(1, keys + 1):
        nvim.type("x")  # never what is suggested
        nvim.wait(lambda n=count: len(nvim.api.vars["times"]) == n, "a suggestion is shown")
    return Times(*nvim.times())


def neovim_model(nvim: Nvim) -> Times:
    """LINES are open: type a line; a key that gets nothing, or what was shown, has no time."""
    nvim.record_times()
    nvim.type("Go")
    for key in TYPED:
        answers = nvim.api.vars["answers"]
        nvim.type(key)
        nvim.wait(
            lambda n=answers: nvim.visible() or nvim.api.vars["answers"] > n, "the key is answered"
        )
    return Times(*nvim.times())


EMACS = """
(defvar dg-key nil) (defvar dg-sent nil) (defvar dg-answered nil) (defvar dg-answers 0)
(defun dg-note (kind value)
  (write-region (format "%s %s\\n" kind value) nil (getenv "DG_TIMES") t 'quiet))
(add-hook 'post-self-insert-hook (lambda () (setq dg-key (float-time))))
(advice-add 'lsp-request-while-no-input :around
  (lambda (ask &rest given)
    (setq dg-sent (float-time))
    (prog1 (apply ask given) (setq dg-answered (float-time)))))
(add-hook 'lsp-inline-completion-shown-hook
  (lambda () (dg-note "shown"
    (format "%f %f" (- (float-time) dg-key) (- dg-answered dg-sent)))))
(advice-add 'lsp-inline-completion-display :after
  (lambda (&rest _) (setq dg-answers (1+ dg-answers)) (dg-note "answered" dg-answers)))
"""
"""Appends to the file DG_TIMES: `shown TOTAL SERVER`, in seconds, and `answered` a request."""


def emacs_loads(emacs: Terminal, times: Path, line: str) -> None:
    """Type a line and take it back, until suggestions come and Emacs has come to rest."""
    for _ in range(LOADING_TRIES):
        typed = ""
        for key in line:
            emacs.type(key)
            typed += key
            if emacs.reaches(lambda: _lines(times, "shown") > 0, REST_SECONDS):
                break
        emacs.type(f"\x07{len(typed) * BACKSPACE}")
        if _lines(times, "shown"):
            before = -1
            while before != (before := _lines(times, "answered")):
                emacs.reaches(lambda n=before: _lines(times, "answered") > n, REST_SECONDS)
            times.unlink()
            return
    raise AssertionError(f"no suggestion came\n{emacs.screen()}")


def emacs_types(emacs: Terminal, times: Path, keys: str) -> Times:
    """Press keys one at a time, each after the answer to the one before."""
    for count, key in enumerate(keys, start=1):
        emacs.type(key)
        emacs.wait(lambda n=count: _lines(times, "answered") >= n, "the key is answered")
    shown = [line.split() for line in times.read_text().splitlines() if line.startswith("shown")]
    return Times([float(total) for _, total, _ in shown], [float(server) for *_, server in shown])


def _lines(times: Path, kind: str) -> int:
    if not times.exists():
        return 0
    return sum(line.startswith(kind) for line in times.read_text().splitlines())


def vscode_times(path: Path) -> Times:
    """What real_model.test.mjs measured."""
    found = json.loads(path.read_text())
    return Times([ms / 1e3 for ms in found["totals"]], [ms / 1e3 for ms in found["servers"]])
