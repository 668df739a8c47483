"""What typed-through answers are made of: `python -m bench.latency.through --lines 40`.

Held-out lines are typed letter by letter at the real server, each followed by a request. As soon as
something is suggested, what is suggested is typed, so that nearly every further key is answered
from what was shown. With `--against FOLDER` (a checkout of another version) every line is typed at
both servers in turn, so that a busy machine slows both alike.

A key whose answer was shown and behind which no job was asked is a typed-through one. For each the
server says when it did what (`bench.latency.through_server`), and an empty request before it says
how long the machine takes to carry anything there and back.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from dg_lsp.bench.holes import HOLES, Hole, read_holes
from dg_lsp.bench.machine import machine
from dg_lsp.bench.player import AUTOMATIC
from dg_lsp.bench.score import quantile

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("server", "engine", "kernels")
URI = "file:///project/{}.py"
LONGEST = 40
"""Letters of a line that are typed at most."""
TARGET_MS = 3.0


class Key(msgspec.Struct, frozen=True):
    """One keystroke."""

    ms: float
    """From before the change is written to behind the answer."""
    shown: bool
    empty_ms: float
    """There and back of a request that does nothing, just before."""
    waited_ms: float
    """How long threads of the server, and this one, were ready meanwhile and had no processor."""
    sent: float
    got: float
    noted: list[tuple[str, float, float]]
    """What the server noted from the key to its answer."""

    @property
    def own_ms(self) -> float:
        """The time without that."""
        return max(0.0, self.ms - self.waited_ms)

    @property
    def is_through(self) -> bool:
        """Whether it was answered from what was shown."""
        return self.shown and not any(name == "prepare" for name, *_ in self.noted)


class Editor:
    """Speaks to one server; blocking, so that nothing of ours is in the way."""

    def __init__(
        self,
        root: Path,
        options: Sequence[str],
        settings: dict[str, Any],
        server: str = "bench.latency.through_server",
    ) -> None:
        path = os.pathsep.join(str(root / part) for part in PARTS)
        self._process = subprocess.Popen(
            [sys.executable, "-m", server, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([path, str(ROOT)])},
            bufsize=0,
        )
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        self._out, self._in = self._process.stdout.fileno(), self._process.stdin.fileno()
        self._buffer = bytearray()
        self._next = 0
        start = {"processId": None, "capabilities": {}, "initializationOptions": settings}
        self.request("initialize", start)
        self.write(message("initialized", {}))

    def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for its result."""
        number = self.number()
        self.write(message(method, params, number))
        return self.result(number)

    def number(self) -> int:
        """A number for a request."""
        self._next += 1
        return self._next

    @property
    def waited_ms(self) -> float:
        """How long all that takes part has waited for a processor (Linux; elsewhere 0)."""
        files = [*Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")]
        own = Path("/proc/thread-self/schedstat")
        return (
            sum(int(file.read_text().split()[1]) for file in (*files, own) if file.exists()) / 1e6
        )

    def write(self, data: bytes) -> None:
        """Send bytes."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._in, view) :]

    def result(self, number: int) -> Any:
        """The result of a request."""
        while True:
            while (end := self._buffer.find(b"\r\n\r\n")) < 0:
                self._read()
            length = int(bytes(self._buffer[:end]).lower().split(b"content-length:")[1].split()[0])
            while len(self._buffer) < end + 4 + length:
                self._read()
            found = msgspec.json.decode(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
            if found.get("id") == number and "method" not in found:
                return found.get("result")

    def close(self) -> None:
        """End the server."""
        self.request("shutdown", None)
        self.write(message("exit", None))
        self._process.wait()

    def _read(self) -> None:
        data = os.read(self._out, 1 << 16)
        if not data:
            raise EOFError("The server is gone.")
        self._buffer += data


def message(method: str, params: Any, number: int | None = None) -> bytes:
    """A request, or a notification without a number."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        body["id"] = number
    raw = msgspec.json.encode(body)
    return b"Content-Length: %d\r\n\r\n%s" % (len(raw), raw)


def type_line(editor: Editor, hole: Hole, name: str, pause: float) -> list[Key]:
    """Type a line at its place: as the author did until something is shown, then what is shown."""
    uri = URI.format(name)
    line = hole.prefix.count("\n")
    column = len(hole.prefix) - (hole.prefix.rfind("\n") + 1)
    document = {"uri": uri, "languageId": "python", "version": 0, "text": hole.prefix + hole.suffix}
    editor.write(message("textDocument/didOpen", {"textDocument": document}))
    left = hole.middle.split("\n")[0].rstrip()[:LONGEST]
    found: list[Key] = []
    while left and len(found) < LONGEST:
        letter, left = left[0], left[1:]
        time.sleep(pause)
        key, text = press(editor, uri, (line, column + len(found)), letter, len(found) + 1)
        found.append(key)
        left = text.split("\n")[0] or left
    editor.write(message("textDocument/didClose", {"textDocument": {"uri": uri}}))
    return found


def press(
    editor: Editor, uri: str, at: tuple[int, int], letter: str, version: int
) -> tuple[Key, str]:
    """One key, and what is suggested behind it."""
    editor.request("bench/stages", {})
    began = time.perf_counter()
    editor.request("bench/stages", {})
    empty_ms = 1e3 * (time.perf_counter() - began)
    place = {"line": at[0], "character": at[1]}
    change = {"range": {"start": place, "end": place}, "text": letter}
    number = editor.number()
    changed = message(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
    )
    asked = message(
        "textDocument/inlineCompletion",
        {
            "textDocument": {"uri": uri},
            "position": {"line": at[0], "character": at[1] + 1},
            "context": {"triggerKind": AUTOMATIC},
        },
        number,
    )
    waited = editor.waited_ms
    sent = time.perf_counter()
    editor.write(changed)
    editor.write(asked)
    items = editor.result(number)["items"]
    got = time.perf_counter()
    waited = editor.waited_ms - waited
    after = editor.request("bench/stages", {})
    noted = [tuple(one) for one in after if one[2] >= sent and one[1] <= got]
    text = items[0]["insertText"] if items else ""
    key = Key((got - sent) * 1e3, bool(items), empty_ms, waited, sent, got, noted)
    return key, text


def measure(options: argparse.Namespace, roots: dict[str, Path]) -> dict[str, list[Key]]:
    """Type every hole's line at each server in turn."""
    settings = {"threads": options.threads, "automaticDeadlineMs": 60_000, "shareEngine": False}
    settings |= {"model": options.model} if options.model else {}
    extra = ["--sample"] if options.sample else []
    editors = {name: Editor(root, extra, settings) for name, root in roots.items()}
    holes = read_holes(HOLES, None)
    random.Random(options.seed).shuffle(holes)
    found: dict[str, list[Key]] = {name: [] for name in roots}
    gc.disable()  # of this process: what it does between two keys is nobody's
    for number, hole in enumerate(holes[: options.lines + 1]):
        turns = list(editors) if number % 2 else list(editors)[::-1]
        for name in turns:
            keys = type_line(editors[name], hole, f"hole{number}", options.pause_ms / 1e3)
            found[name] += keys if number else []  # the first one warms the process up
        gc.collect()
    for editor in editors.values():
        editor.close()
    return found


def stages(key: Key) -> dict[str, float]:
    """A key's time by stage, in milliseconds."""
    at = {name: (began, ended) for name, began, ended in key.noted}
    needed = ("read change", "receive change", "receive request", "find", "items", "write answer")
    if any(name not in at for name in needed):
        return {}
    marks = [
        ("to the reader", key.sent, at["read change"][0]),
        ("to the loop", at["read change"][0], at["receive change"][0]),
        ("change", *at["receive change"]),
        ("to the request", at["receive change"][1], at["receive request"][0]),
        ("receive request", *at["receive request"]),
        ("to the handler", at["receive request"][1], at["find"][0]),
        ("find", *at["find"]),
        ("items", *at["items"]),
        ("to the writer", at["items"][1], at["write answer"][0]),
        ("write", *at["write answer"]),
        ("to the client", at["write answer"][1], key.got),
    ]
    found = {name: max(0.0, 1e3 * (ended - began)) for name, began, ended in marks}
    found["of it collecting"] = sum(
        1e3 * (ended - began) for name, began, ended in key.noted if name.startswith("gc")
    )
    found["of it preparing a prefetch"] = sum(
        1e3 * (ended - max(began, key.sent))
        for name, began, ended in key.noted
        if name == "prepare ahead"
    )
    return found


def report(name: str, keys: Sequence[Key]) -> str:
    """Typed-through answers of one server."""
    through = [key for key in keys if key.is_through]
    times = [key.ms for key in through]
    empty = [key.empty_ms for key in through]
    own = [key.own_ms for key in through]
    slow = [key for key in through if key.ms > TARGET_MS]
    lines = [
        f"**{name}**: {len(keys)} keys, {len(through)} typed through: "
        f"p50 {quantile(times, 0.5):.2f}, p90 {quantile(times, 0.9):.2f}, "
        f"p99 {quantile(times, 0.99):.2f}, worst {max(times):.2f} ms; "
        f"{len(slow)} above {TARGET_MS:g}. An empty request: p50 {quantile(empty, 0.5):.2f}, "
        f"p99 {quantile(empty, 0.99):.2f}, worst {max(empty):.2f} ms. Without the time for which "
        f"there was no processor: p50 {quantile(own, 0.5):.2f}, p90 {quantile(own, 0.9):.2f}, "
        f"p99 {quantile(own, 0.99):.2f}, worst {max(own):.2f} ms.",
        "",
        "| stage | p50 | p99 | worst | mean of the slow |",
        "|---|---|---|---|---|",
    ]
    split = [(key, made) for key in through if (made := stages(key))]
    for stage in split[0][1] if split else ():
        values = [made[stage] for _, made in split]
        slows = [made[stage] for key, made in split if key.ms > TARGET_MS]
        mean = f"{sum(slows) / len(slows):.2f}" if slows else "-"
        lines.append(
            f"| {stage} | {quantile(values, 0.5):.2f} | {quantile(values, 0.99):.2f} "
            f"| {max(values):.2f} | {mean} |"
        )
    waits = [key.waited_ms for key in through]
    slows = [key.waited_ms for key in slow]
    mean = f"{sum(slows) / len(slows):.2f}" if slows else "-"
    lines.append(
        f"| no processor | {quantile(waits, 0.5):.2f} "
        f"| {quantile(waits, 0.99):.2f} | {max(waits):.2f} | {mean} |"
    )
    return "\n".join(lines)


def slowest(keys: Sequence[Key], count: int) -> str:
    """What happened in the slowest typed-through answers."""
    through = sorted((key for key in keys if key.is_through), key=lambda key: -key.ms)
    lines: list[str] = []
    for key in through[:count]:
        made = " ".join(f"{name}={ms:.2f}" for name, ms in stages(key).items() if ms >= 0.05)
        waits = f"waited {key.waited_ms:.2f}, empty {key.empty_ms:.2f}"
        lines.append(f"{key.ms:.2f} ms, {waits}: {made}")
        seen = Counter(name for name, *_ in key.noted if name.startswith(("main ", "other ")))
        lines += [f"    {times} × {name}" for name, times in seen.most_common(6)]
    return "\n".join(lines)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default=None)
    parser.add_argument("--lines", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pause-ms", type=float, default=0.0, help="between two keys")
    parser.add_argument("--against", type=Path, default=None, help="a checkout to compare with")
    parser.add_argument("--slowest", type=int, default=0, help="show what so many were made of")
    parser.add_argument("--sample", action="store_true", help="note what threads do; slower")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    roots = {"this": ROOT} | ({"other": options.against} if options.against else {})
    found = measure(options, roots)
    print(f"{options.lines} held-out lines, {options.pause_ms:g} ms between keys; {machine()}.\n")
    for name, keys in found.items():
        print(report(name, keys), end="\n\n")
        if options.slowest:
            print(slowest(keys, options.slowest), end="\n\n")
    if options.json:
        options.json.write_text(json.dumps(msgspec.to_builtins(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
