"""A window that types, cancels, accepts and deletes at random, and checks every answer."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Sequence

import msgspec
from dg_lsp.bench.client import Client, Request, ServerEnded

SERVER = (sys.executable, "-m", "dg_lsp.cli.main", "--stdio")
LATE_SECONDS = 2.0
"""An answer with text may come so long after a change that the server had not read yet."""
PATIENCE_SECONDS = 30.0
LINES = (
    "    total = first + second",
    "    names = [name for name in values if name]",
    "    for key, value in table.items():",
    "    if not path.exists():",
    "    return json.dumps(result, indent=2)",
    "    self.count += 1",
    "    raise ValueError(f'{name} is not known')",
    "    with open(path, encoding='utf-8') as file:",
)
HEAD = '"""Tables of values."""\n\nimport json\nfrom pathlib import Path\n\n\n'
FUNCTION = "def step_{0}(first, second, values, table, path):\n{1}\n    return first\n\n\n"


class Counts(msgspec.Struct):
    """What all windows did."""

    keys: int = 0
    requests: int = 0
    cancelled: int = 0
    shown: int = 0
    accepted: int = 0
    reopened: int = 0
    ms: list[float] = []
    faults: list[str] = []


class Typist:
    """One window, opened anew after it was killed."""

    def __init__(self, name: str, settings: dict[str, object], counts: Counts) -> None:
        self.name = name
        self.client: Client | None = None
        self._settings = settings
        self._counts = counts
        self._rng = random.Random(name)
        self._version = 0
        self._changed_at = 0.0
        self._row = self._column = 0
        """Where was typed last."""
        self._open: set[asyncio.Task[None]] = set()
        self._sent: set[int] = set()
        self._lines: list[str] = []

    @property
    def uri(self) -> str:
        """Of its document."""
        return f"file:///soak/{self.name}.py"

    async def run(self, until: float) -> None:
        """Type until then, by the monotonic clock."""
        while time.monotonic() < until:
            self.client = await Client.start(SERVER)
            try:
                await self.client.initialize(self._settings)
                self._begin()
                while time.monotonic() < until:
                    await self._line(until)
            except ServerEnded as error:
                # Only whoever kills windows ends one.
                if "-9" not in str(error):
                    self._counts.faults.append(f"{self.name}: {error}")
                self._counts.reopened += 1
                self._sent.clear()
                self._drop()

    async def ready(self) -> None:
        """Wait until the model is ready here, in a window that is open."""
        while True:
            client = self.client
            try:
                if client is not None:
                    status = await client.request(
                        "workspace/executeCommand", {"command": "dg.status"}
                    )
                    if status.error_code is None and status.result["model"] == "ready":
                        return
            except ServerEnded:
                pass  # it is opened anew
            await asyncio.sleep(0.1)

    async def end(self) -> None:
        """Wait for the last answers, count them, and close the window."""
        client = self.client
        if client is None or client.process.returncode is not None:
            return
        if self._open:
            await asyncio.wait(self._open, timeout=PATIENCE_SECONDS)
        for number in self._sent:
            count = client.answers.get(number, 0)
            if count != 1:
                self._counts.faults.append(f"{self.name}: request {number} had {count} responses")
        status = await client.leave()
        if status != 0:
            self._counts.faults.append(f"{self.name}: the server ended with {status}")

    def _drop(self) -> None:
        for task in self._open:
            task.cancel()
        self._open.clear()

    def _begin(self) -> None:
        self._version = 1
        functions = (FUNCTION.format(n, self._rng.choice(LINES)) for n in range(6))
        self._lines = (HEAD + "".join(functions)).split("\n")
        item = {"uri": self.uri, "languageId": "python", "version": 1}
        self._say(
            "textDocument/didOpen", {"textDocument": {**item, "text": "\n".join(self._lines)}}
        )

    async def _line(self, until: float) -> None:
        """Retype a line, character by character."""
        places = [n for n, line in enumerate(self._lines) if line.startswith("    ")]
        row = self._rng.choice(places)
        text = self._rng.choice(LINES)
        self._change(row, 4, len(self._lines[row]), "")
        last: Request | None = None
        for column in range(4, len(text)):
            self._change(row, column, column, text[column])
            self._counts.keys += 1
            if last is not None and not last.answer.done() and self._rng.random() < 0.5:
                self._client.cancel(last)
                self._counts.cancelled += 1
            last = self._ask(row, column + 1)
            await asyncio.sleep(self._rng.expovariate(1 / 0.12))
            if time.monotonic() > until or self._client.process.returncode is not None:
                break
            if self._rng.random() < 0.05 and await self._accepts(last, row, column + 1):
                break
        await self._client.drain()

    @property
    def _client(self) -> Client:
        assert self.client is not None
        return self.client

    def _say(self, method: str, params: object) -> None:
        self._client.notify(method, params)

    def _change(self, row: int, start: int, end: int, text: str) -> None:
        line = self._lines[row]
        self._lines[row] = line[:start] + text + line[end:]
        self._version += 1
        self._changed_at = time.perf_counter()
        self._row, self._column = row, start + len(text)
        change = {
            "range": {
                "start": {"line": row, "character": start},
                "end": {"line": row, "character": end},
            },
            "text": text,
        }
        document = {"uri": self.uri, "version": self._version}
        self._say("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def _ask(self, row: int, column: int) -> Request:
        document = {"uri": self.uri, "version": self._version}
        place = {"line": row, "character": column}
        params = {"textDocument": document, "position": place, "context": {"triggerKind": 2}}
        request = self._client.send("textDocument/inlineCompletion", params)
        self._sent.add(request.id)
        self._counts.requests += 1
        task = asyncio.ensure_future(self._check(request, self._version, row, column))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return request

    async def _check(self, request: Request, version: int, row: int, column: int) -> None:
        try:
            answer = await asyncio.wait_for(asyncio.shield(request.answer), PATIENCE_SECONDS)
        except TimeoutError:
            self._counts.faults.append(f"{self.name}: request {request.id} was not answered")
            return
        except ServerEnded:
            return
        items = _items(answer.result)
        if not items:
            return
        self._counts.shown += 1
        self._counts.ms.append((answer.at - request.at) * 1000)
        if version != self._version and answer.at - self._changed_at > LATE_SECONDS:
            self._counts.faults.append(f"{self.name}: an answer to version {version} came late")
        # What was typed behind the request meanwhile may be known to the answer.
        if self._row == row:
            column = max(column, self._column)
        for item in items:
            start = item.get("range", {}).get("start", {"line": row, "character": column})
            if start["line"] != row or start["character"] > column:
                self._counts.faults.append(f"{self.name}: an answer for another place")

    async def _accepts(self, request: Request, row: int, column: int) -> bool:
        """Take what is suggested here, if something is."""
        try:
            answer = await asyncio.wait_for(asyncio.shield(request.answer), 2)
        except (TimeoutError, ServerEnded):
            return False
        items = _items(answer.result)
        if not items:
            return False
        text = str(items[0]["insertText"]).split("\n")[0]
        known = items[0].get("range", {}).get("start", {"character": column})["character"]
        self._change(row, known, column, text)
        self._counts.accepted += 1
        return True


def _items(result: object) -> Sequence[dict]:
    if isinstance(result, dict):
        return result.get("items", [])
    return result if isinstance(result, list) else []
