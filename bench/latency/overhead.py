"""What the server itself takes for completions and changes: `python -m bench.latency.overhead`.

Lines of a large Python file, made of the standard library's modules, are typed again at the real
server (dg-tiny in its engine), each key followed by a request. What the event loop ran from the
reading of the request to the written answer is the server's part, and so is what lies between the
two without the time for which the engine worked and for which the server waits on purpose for the
next key. Then a larger file is changed all over, and what the loop ran for each change is counted.
`bench.latency.overhead_server` notes both.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from dg_lsp.bench.machine import machine
from dg_lsp.bench.player import AUTOMATIC
from dg_lsp.bench.score import quantile
from dg_lsp.documents import ContentChange, Document
from dg_lsp.positions import Encoding, Position, Range

from bench.latency.through import ROOT, Editor, message

URI = "file:///project/large.py"
SERVER = "bench.latency.overhead_server"
LETTERS = 5
"""Keys of a line: the first at a place that the server has not seen, the others behind it."""
AT_ONCE = 20
"""Changes that are sent in one piece, where what one takes is not that of a pause before it."""
BURST = "behind another one"
SETTLE_SECONDS = 0.005
"""How long what a change set going may begin to run on the loop."""
COMPLETION_MS, CHANGE_MS = 2.0, 0.2
"""What both may take at p99."""
OPEN_SECONDS = 2.0
"""How long a file has been open when the first key comes: servers look through it meanwhile."""
WARM_UP = 10
_MIB = 1 << 20

Noted = list[tuple[str, float, float]]


class Asked(msgspec.Struct, frozen=True):
    """One completion that the engine was asked for. Times in milliseconds."""

    new: bool
    """Whether it was the first at its place."""
    shown: bool
    between: float
    """From the reading to the written answer, without the engine and the wait."""
    added: float
    """What of it comes later than the engine's time and the wait as it was meant would have it:
    what is prepared while the server waits for the next key anyway delays nothing. Never less than
    what comes behind the wait, though the wait itself may end a little early."""
    own: float
    """What the loop ran for it with a processor, but for what it ran while the engine worked."""
    loop: float
    """All that the loop ran from reading the request to the written answer."""
    processor: float
    """Of it, what had a processor."""
    stages: dict[str, float]


class Change(msgspec.Struct, frozen=True):
    """One change. Times in milliseconds."""

    kind: str
    loop: float
    """What the loop ran for it."""
    processor: float


class Edit(NamedTuple):
    """A text in place of a range within the lines `first` to `last`."""

    kind: str
    first: int
    start: int
    last: int
    end: int
    text: str

    @property
    def change(self) -> ContentChange:
        """As the document takes it; the file is ASCII, so columns are units in any encoding."""
        place = Range(Position(self.first, self.start), Position(self.last, self.end))
        return ContentChange(self.text, place)


def library_text(size: int) -> str:
    """`size` characters of the standard library, one module behind the other, ASCII alone."""
    parts: list[str] = []
    length = 0
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    while length < size:
        for file in files:
            text = file.read_text(encoding="utf-8", errors="replace")
            if text.isascii() and length < size:
                parts.append(text)
                length += len(text)
    return "".join(parts)[:size]


class Typist:
    """One document, and where it stands."""

    def __init__(self, editor: Editor, text: str) -> None:
        self._editor = editor
        self._version = 0
        document = {"uri": URI, "languageId": "python", "version": 0, "text": text}
        editor.write(message("textDocument/didOpen", {"textDocument": document}))
        self.take()

    def take(self) -> Noted:
        """What the server noted since the last time."""
        return [tuple(one) for one in self._editor.request("bench/stages", {})]

    def _message(self, edit: Edit) -> bytes:
        self._version += 1
        changed = {
            "textDocument": {"uri": URI, "version": self._version},
            "contentChanges": [msgspec.to_builtins(edit.change)],
        }
        return message("textDocument/didChange", changed)

    def burst(self, edits: Sequence[Edit]) -> list[float]:
        """What each of many changes takes that are read at once, in milliseconds."""
        self.take()
        self._editor.write(b"".join(map(self._message, edits)))
        noted = self.take()
        return [1e3 * (b - a) for name, a, b in noted if name == "receive change"]

    def change(self, edit: Edit) -> Change:
        """One change by itself, behind a pause."""
        changed = self._message(edit)
        self.take()
        sent = time.perf_counter()
        self._editor.write(changed)
        time.sleep(SETTLE_SECONDS)
        until = time.perf_counter()
        noted = self.take()
        loop, processor = ran(noted, sent, handled(noted, until))
        return Change(edit.kind, loop, processor)

    def ask(self, line: int, column: int, *, new: bool) -> Asked | None:
        """One completion; None when the engine was not asked."""
        number = self._editor.number()
        place = {"line": line, "character": column}
        asked = {"textDocument": {"uri": URI}, "position": place}
        asked |= {"context": {"triggerKind": AUTOMATIC}}
        self._editor.write(message("textDocument/inlineCompletion", asked, number))
        shown = bool(self._editor.result(number)["items"])
        return completion_of(self.take(), new=new, shown=shown)


def handled(noted: Noted, until: float) -> float:
    """The end of the callback that read the change, where it came later than `until`: a server
    that had no processor meanwhile."""
    read = min(a for name, a, _ in noted if name == "receive change")
    return max(until, *(b for name, a, b in noted if name == "loop" and a <= read <= b))


def ran(noted: Noted, since: float, until: float) -> tuple[float, float]:
    """Milliseconds that the loop ran between two times, and what of it had a processor."""
    inside = [(name, 1e3 * (b - a)) for name, a, b in noted if since <= a and b <= until]
    loop = sum(ms for name, ms in inside if name == "loop")
    return loop, sum(ms for name, ms in inside if name == "processor")


def completion_of(noted: Noted, *, new: bool, shown: bool) -> Asked | None:
    """A completion from what was noted; None when the engine was not asked."""
    at = {name: (began, ended) for name, began, ended in noted}
    if any(name not in at for name in ("receive request", "engine", "write answer")):
        return None
    read, written = at["receive request"], at["write answer"][1]
    # The callback that read the message began before the message was there to be noted.
    began = min(a for name, a, b in noted if name == "loop" and a <= read[0] <= b)
    # The one that wrote the answer ends a little behind it.
    ended = max(b for name, a, b in noted if name == "loop" and a <= written <= b)
    loop, processor = ran(noted, began, ended)
    away = [(a, b) for name, a, b in noted if name in ("engine", "wait")]
    between = ended - began - sum(b - a for a, b in away)
    meant = sum(b - a for name, a, b in noted if name == "meant")
    waited = sum(b - a for name, a, b in noted if name == "wait")
    prepared = min((a for name, a, b in noted if name in ("engine", "wait")), default=began) - began
    beside = sum(ran(noted, *times)[1] for times in away)
    stages = {
        "message": 1e3 * (read[1] - began),
        "context": _ms(noted, "of it context"),
        "prompt": _ms(noted, "of it prompt"),
        "tokeniser": _ms(noted, "of it tokenise"),
        "filters": _ms(noted, "of it suggest"),
        "answer": 1e3 * (ended - at["find"][1]),
        "loop while the engine works": ran(noted, *at["engine"])[0],
        "collecting garbage": sum(
            1e3 * (b - a) for name, a, b in noted if name[:2] == "gc" and began <= a <= ended
        ),
    }
    return Asked(
        new=new,
        shown=shown,
        between=1e3 * between,
        added=1e3 * (between - min(max(meant - waited, 0.0), prepared)),
        own=processor - beside,
        loop=loop,
        processor=processor,
        stages=stages,
    )


def _ms(noted: Noted, name: str) -> float:
    return sum(1e3 * (ended - began) for noted_as, began, ended in noted if noted_as == name)


def completions(
    editors: Mapping[str, Editor], text: str, count: int, pause: float, seed: int
) -> dict[str, list[Asked]]:
    """Type lines all over a file, each at every server in turn, until `count` jobs ran for each."""
    typists = {name: Typist(editor, text) for name, editor in editors.items()}
    time.sleep(OPEN_SECONDS)
    found: dict[str, list[Asked]] = {name: [] for name in editors}
    lines, rng = text.split("\n"), random.Random(seed)
    for turn in itertools.count():
        number = rng.randrange(len(lines))
        if len(lines[number].strip()) < 2 * LETTERS:
            continue
        for name in list(typists) if turn % 2 else reversed(typists):
            found[name] += type_line(typists[name], number, lines[number], pause)
        if min(map(len, found.values())) >= count + WARM_UP:
            return {name: asked[WARM_UP : count + WARM_UP] for name, asked in found.items()}
    raise AssertionError("there are always more lines")


def type_line(typist: Typist, number: int, line: str, pause: float) -> list[Asked]:
    """Take a line away, type the start of it again, and put it back."""
    indent = len(line) - len(line.lstrip())
    found: list[Asked] = []
    typist.change(Edit("erase", number, indent, number, len(line), ""))
    for typed in range(LETTERS):
        column = indent + typed
        time.sleep(pause)
        typist.change(Edit("letter", number, column, number, column, line[column]))
        asked = typist.ask(number, column + 1, new=not typed)
        found += [asked] if asked else []
    typist.change(Edit("put back", number, indent, number, indent + LETTERS, line[indent:]))
    return found


def edits(lines: Sequence[str], count: int, seed: int) -> Iterator[Edit]:
    """Changes all over a file, each taken back by the next one."""
    rng = random.Random(seed)
    block = "    value = other + 1\n" * 40
    for _ in range(count // 2):
        line = rng.randrange(len(lines))
        column = len(lines[line])
        text, kind = rng.choice(
            [("x", "letter"), ("x", "letter"), ("\n", "line break"), (block, "40 lines")]
        )
        last = line + text.count("\n")
        end = 0 if "\n" in text else column + len(text)
        yield Edit(kind, line, column, line, column, text)
        yield Edit(f"{kind} erased", line, column, last, end, "")


def changes(
    editors: Mapping[str, Editor], text: str, count: int, seed: int
) -> dict[str, list[Change]]:
    """Changes of a file one by one, then many at once, each at every server in turn."""
    typists = {name: Typist(editor, text) for name, editor in editors.items()}
    found: dict[str, list[Change]] = {name: [] for name in editors}
    lines = text.split("\n")
    for turn, edit in enumerate(edits(lines, count + WARM_UP, seed)):
        for name in list(typists) if turn % 2 else reversed(typists):
            found[name].append(typists[name].change(edit))
    found = {name: made[WARM_UP:] for name, made in found.items()}
    for turn in range(count // AT_ONCE):
        many = list(edits(lines, AT_ONCE, seed + turn + 1))
        for name in list(typists) if turn % 2 else reversed(typists):
            # What a pause costs is the first one's.
            found[name] += [Change(BURST, ms, ms) for ms in typists[name].burst(many)[1:]]
    return found


def layer(text: str, count: int, seed: int) -> list[Change]:
    """The same changes of the document alone: a new line table that shares what stays."""
    document = Document.of(URI, 0, "python", text)
    found: list[Change] = []
    for edit in edits(text.split("\n"), count + WARM_UP, seed):
        began, spent = time.perf_counter(), time.thread_time()
        document = document.changed([edit.change], document.version + 1, Encoding.UTF16)
        took, had = time.perf_counter() - began, time.thread_time() - spent
        found.append(Change(edit.kind, 1e3 * took, 1e3 * had))
    assert document.lines.text() == text, "the last change took the one before back"
    return found[WARM_UP:]


def row(name: str, values: Sequence[float], bar: float) -> str:
    """Quantiles of milliseconds, and how many are above a bar."""
    over = sum(ms > bar for ms in values)
    return (
        f"| {name} | {len(values)} | {quantile(values, 0.5):.3f} | {quantile(values, 0.9):.3f} "
        f"| {quantile(values, 0.99):.3f} | {max(values):.3f} | {over} |"
    )


def table(bar: float) -> list[str]:
    """The head of a table of such rows."""
    return [f"| ms | number | p50 | p90 | p99 | worst | above {bar:g} |", "|---" * 7 + "|"]


def report_completions(found: Sequence[Asked], mib: float) -> str:
    """What completions took of the server."""
    new, on = ([one for one in found if one.new is kind] for kind in (True, False))
    rows = [
        row(name, [getattr(one, field) for one in asked], COMPLETION_MS)
        for name, asked in (("", found), (", new place", new), (", typed on", on))
        if asked
        for name, field in (
            (f"added to the wait and the engine{name}", "added"),
            (f"from reading to writing{name}", "between"),
            (f"the same, with a processor{name}", "own"),
            (f"all that the loop ran{name}", "loop"),
            (f"the same, with a processor{name}", "processor"),
        )
    ]
    stages = [
        row(stage, [one.stages[stage] for one in found], COMPLETION_MS) for stage in found[0].stages
    ]
    shown = sum(one.shown for one in found)
    return "\n".join(
        [
            f"{len(found)} completions by the engine in {mib:g} MiB of Python, {shown} shown.",
            "",
            *table(COMPLETION_MS),
            *rows,
            *stages,
        ]
    )


def report_changes(found: Sequence[Change], alone: Sequence[Change], mib: float) -> str:
    """What changes took of the server."""
    single = [one for one in found if one.kind != BURST]
    kinds = sorted({one.kind for one in single})
    rows = [
        row("loop, behind a pause", [one.loop for one in single], CHANGE_MS),
        row("of it with a processor", [one.processor for one in single], CHANGE_MS),
        row(f"loop, {BURST}", [one.loop for one in found if one.kind == BURST], CHANGE_MS),
        row("document alone", [one.loop for one in alone], CHANGE_MS),
        *(
            row(f"loop, {kind}", [one.loop for one in found if one.kind == kind], CHANGE_MS)
            for kind in kinds
        ),
    ]
    return "\n".join([f"changes of {mib:g} MiB of Python.", "", *table(CHANGE_MS), *rows])


def measure(options: argparse.Namespace, roots: Mapping[str, Path]) -> list[str]:
    """Both, with a server of each version at once; the tables."""
    settings: dict[str, Any] = {"threads": options.threads, "shareEngine": False}
    settings |= {"automaticDeadlineMs": 60_000}
    settings |= {"model": options.model} if options.model else {}
    tables: list[str] = []
    found: dict[str, Any] = {}

    def started() -> dict[str, Editor]:
        return {name: Editor(root, [], settings, SERVER) for name, root in roots.items()}

    if options.completions:
        text, pause = library_text(round(options.mib * _MIB)), options.pause_ms / 1e3
        editors = started()
        found["completions"] = completions(editors, text, options.completions, pause, options.seed)
        for name, asked in found["completions"].items():
            tables.append(f"**{name}**: {report_completions(asked, options.mib)}")
            editors[name].close()
    if options.changes:
        text = library_text(round(options.changed_mib * _MIB))
        editors = started()
        found["changes"] = changes(editors, text, options.changes, options.seed)
        alone = found["alone"] = layer(text, options.changes, options.seed)
        for name, made in found["changes"].items():
            tables.append(f"**{name}**: {report_changes(made, alone, options.changed_mib)}")
            editors[name].close()
    if options.json:
        options.json.write_text(json.dumps(msgspec.to_builtins(found)), encoding="utf-8")
    return tables


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default=None)
    parser.add_argument("--completions", type=int, default=500)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--mib", type=float, default=1.0)
    parser.add_argument("--changed-mib", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pause-ms", type=float, default=50.0, help="before a key")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--against", type=Path, default=None, help="a checkout to compare with")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    roots = {"this": ROOT} | ({"other": options.against} if options.against else {})
    print(machine(), *measure(options, roots), sep="\n\n")


if __name__ == "__main__":
    main()
