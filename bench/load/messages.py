"""Messages that no editor should send: seeded, each with the id that must be answered to it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from bench.load.shots import (
    COMMANDS,
    DEEP,
    DOCUMENT,
    FIRST_ID,
    JUNK,
    METHODS,
    RESYNC,
    URIS,
    MessageId,
    Shot,
    encoded,
    framed,
    is_id,
)


class Fuzzer:
    """An endless source of shots; the same seed gives the same shots."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._next = FIRST_ID
        self._version = 1
        self._kinds: list[tuple[int, Callable[[], Shot]]] = [
            (30, self.mutated_request),
            (20, self.mutated_notification),
            (8, self.any_request),
            (6, self.any_notification),
            (6, self.wrong_envelope),
            (6, self.cancel),
            (5, self.unasked_response),
            (5, self.not_json),
            (4, self.truncated),
            (5, self.wrong_length),
            (3, self.odd_header),
            (2, self.odd_json),
        ]

    def shot(self) -> Shot:
        """The next one."""
        weights = [weight for weight, _ in self._kinds]
        _, kind = self._rng.choices(self._kinds, weights)[0]
        return kind()

    def reply(self) -> Any:
        """A result for a request of the server's own; it may well be nonsense."""
        sensible = [None, [None], {"applied": True}, {"applied": False, "failureReason": "no"}]
        return self._rng.choice([*sensible, *JUNK])

    def mutated_request(self) -> Shot:
        """A request of ours with something changed in its parameters."""
        method, params = self._template()
        return self._request(method, self._mutate(params), "mutated request")

    def mutated_notification(self) -> Shot:
        """A document notification with something changed in it."""
        rng = self._rng
        self._version += 1
        version: dict[str, Any] = {"uri": self._uri(), "version": self._version}
        change = {"range": {"start": self._position(), "end": self._position()}, "text": "ab\n"}
        opened = {**version, "languageId": "python", "text": "def f():\n    return \n"}
        method, params = rng.choice(
            [
                (types.TEXT_DOCUMENT_DID_OPEN, {"textDocument": opened}),
                *[(types.TEXT_DOCUMENT_DID_CHANGE, d) for d in [
                    {"textDocument": version, "contentChanges": [change]},
                    {"textDocument": version, "contentChanges": [change, {"text": "whole"}]},
                ]],
                (types.TEXT_DOCUMENT_DID_CLOSE, {"textDocument": version}),
                (types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"settings": {"dg": {"threads": 1}}}),
                (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._folders()),
                *self._notebook(version, opened),
            ]
        )  # fmt: skip
        if rng.random() < 0.7:
            params = self._mutate(params)
        return self._notification(method, params, "mutated notification")

    def any_request(self) -> Shot:
        """Any method, notifications among them, or none that there is, with any parameters."""
        rng = self._rng
        method = rng.choice([*METHODS, "", "x/y", "$/nothing", "\u2028", "a" * 1000])
        return self._request(method, self._any(3), "any request")

    def any_notification(self) -> Shot:
        """As any_request, without an id.

        Not `initialized`, for which a server may well load its model again.
        """
        rng = self._rng
        method = rng.choice([m for m in METHODS if m != types.INITIALIZED] + ["", "x/y", "$/x"])
        return self._notification(method, self._any(3), "any notification")

    def wrong_envelope(self) -> Shot:
        """A message whose own fields have the wrong type; a usable id must be answered."""
        rng = self._rng
        message = self._envelope(types.TEXT_DOCUMENT_INLINE_COMPLETION, {})
        message_id = self._new_id()
        message["id"] = message_id
        field = rng.choice(["id", "method", "jsonrpc", "params"])
        if field == "params" and rng.random() < 0.5:
            del message[field]
        else:
            message[field] = rng.choice([v for v in JUNK if not is_id(v)])
        if field == "method" and message[field] is None:
            # Without a method it is a response to nothing.
            return Shot(framed(encoded(message)), "wrong envelope", may=message_id)
        answerable = field != "id"
        return Shot(
            framed(encoded(message)), "wrong envelope", must=message_id if answerable else None
        )

    def cancel(self) -> Shot:
        """$/cancelRequest of a request that may be running, of none, or of nonsense."""
        recent = self._next - self._rng.randrange(1, 40)
        which = self._rng.choice([recent, recent, recent, f"s{recent}", *JUNK])
        return self._notification(types.CANCEL_REQUEST, {"id": which}, "cancel")

    def unasked_response(self) -> Shot:
        """A response to a request that the server never sent."""
        rng = self._rng
        part = rng.choice(
            [{"result": self._any(2)}, {"error": self._any(2)}, {}, {"result": 1, "error": {}}]
        )
        message = {"jsonrpc": "2.0", "id": rng.choice(JUNK), **part}
        # An id of JUNK may come back in an error; it is no id of ours.
        return Shot(framed(encoded(message)), "unasked response")

    def not_json(self) -> Shot:
        """Bytes in a proper frame."""
        rng = self._rng
        body = rng.choice(
            [b"", b"{", b"null", b"[]", b"1", b"\xff\xfe", b"{'id': 1}", b"\x00" * 40]
        )
        if rng.random() < 0.5:
            body = rng.randbytes(rng.randrange(1, 200))
        return Shot(framed(body), "not JSON")

    def truncated(self) -> Shot:
        """A request cut short, in a frame of the shorter length."""
        whole = encoded({**self._envelope(*self._template()), "id": self._new_id()})
        return Shot(framed(whole[: self._rng.randrange(len(whole))]), "truncated")

    def wrong_length(self) -> Shot:
        """A frame whose length is too small or too great; what the server then needs follows."""
        rng = self._rng
        whole = encoded({**self._envelope(*self._template()), "id": self._new_id()})
        off = rng.randrange(1, 60)
        if rng.random() < 0.5:
            header = b"Content-Length: %d" % (len(whole) + off)
            return Shot(framed(whole, header) + b"}" * off, "length too great")
        header = b"Content-Length: %d" % max(0, len(whole) - off)
        # Without the empty line the rest of the body stands in front of the next header.
        return Shot(framed(whole, header) + rng.choice([RESYNC, b""]), "length too small")

    def odd_header(self) -> Shot:
        """A header without a usable length, which is skipped with its body, or an unusual one."""
        rng = self._rng
        method, params = self._template()
        message_id = self._new_id()
        body = encoded({**self._envelope(method, params), "id": message_id})
        size = len(body)
        good = [
            b"content-length:%d" % size,
            b"CONTENT-LENGTH: %d  " % size,
            b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d" % size,
            b"X: y\r\nContent-Length: %d" % size,
            b"Content-Length: 000%d" % size,
        ]
        bad = [
            b"", b"Content-Length:", b"Content-Length: -5", b"Content-Length: 1e3", b"Length: 3",
            b"Content-Length: " + b"9" * 30, b"Content-Length: " + b"9" * 5000,
            b"Content-Length: 12 34", b"\x00\xff", b"X" * 5000,
        ]  # fmt: skip
        if rng.random() < 0.5:
            return Shot(framed(body, rng.choice(good)), "unusual header", must=message_id)
        return Shot(rng.choice(bad) + b"\r\n\r\n" + body + RESYNC, "header without length")

    def odd_json(self) -> Shot:
        """Rare JSON: nested too deep, halves of characters, what only some parsers take."""
        rng = self._rng
        message_id = self._new_id()
        written = json.dumps(message_id).encode()
        start = b'{"jsonrpc":"2.0","id":%s,"method":"textDocument/codeAction",' % written
        lawful = [b'"params":{"a":"\\ud83d"}}', b'"params":{"a":1,"a":2}}', b' "params" : [ ] } ']
        if rng.random() < 0.5:
            return Shot(framed(start + rng.choice(lawful)), "rare JSON", must=message_id)
        deep = [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP]
        odd = [*deep, b"NaN", b"-Infinity", b"0x10", b'"\x01"', b"1" * 5000, b"\xed\xa0\x80"]
        body = start + b'"params":' + rng.choice(odd) + b"}"
        if rng.random() < 0.3:
            body = b"\xef\xbb\xbf" + body
        return Shot(framed(body), "odd JSON", may=message_id)

    def _folders(self) -> dict[str, Any]:
        added, removed = ([{"uri": self._uri(), "name": "x"}] for _ in range(2))
        return {"event": {"added": added, "removed": removed}}

    def _notebook(
        self, version: dict[str, Any], opened: dict[str, Any]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Notifications about a notebook with the document in it."""
        cells = [{"kind": self._rng.randrange(1, 3), "document": opened["uri"]}]
        start, gone = self._rng.randrange(-1, 3), self._rng.randrange(3)
        change = {
            "structure": {
                "array": {"start": start, "deleteCount": gone, "cells": cells},
                "didOpen": [opened],
                "didClose": [version],
            },
            "data": cells,
            "textContent": [{"document": version, "changes": [{"text": "whole"}]}],
        }
        notebook = {"uri": "file:///project/a.ipynb", "version": 1}
        return [
            (
                types.NOTEBOOK_DOCUMENT_DID_OPEN,
                {"notebookDocument": {**notebook, "cells": cells}, "cellTextDocuments": [opened]},
            ),
            (
                types.NOTEBOOK_DOCUMENT_DID_CHANGE,
                {"notebookDocument": notebook, "change": {"cells": change}},
            ),
            (
                types.NOTEBOOK_DOCUMENT_DID_CLOSE,
                {"notebookDocument": notebook, "cellTextDocuments": [version]},
            ),
        ]

    def _template(self) -> tuple[str, dict[str, Any]]:
        rng = self._rng
        where: dict[str, Any] = {"textDocument": {"uri": self._uri()}, "position": self._position()}
        span = {"start": self._position(), "end": self._position()}
        command = {
            "command": rng.choice(COMMANDS),
            "arguments": [
                {
                    "uri": self._uri(),
                    "range": span,
                    "position": self._position(),
                    "instruction": "x",
                    "version": rng.choice([None, 1, self._version]),
                }
            ],
        }
        return rng.choice(
            [
                (
                    types.TEXT_DOCUMENT_INLINE_COMPLETION,
                    {**where, "context": {"triggerKind": rng.randrange(3)}},
                ),
                (types.TEXT_DOCUMENT_CODE_ACTION, {**where, "range": span, "context": {}}),
                (types.WORKSPACE_EXECUTE_COMMAND, command),
            ]
        )

    def _uri(self) -> str:
        return DOCUMENT if self._rng.random() < 0.7 else self._rng.choice(URIS)

    def _position(self) -> dict[str, int]:
        numbers = [0, 1, 2, 11, 1000, 2**31 - 1, 2**53, 2**63 - 1, -1]
        weights = [8, 8, 4, 4, 2, 1, 1, 1, 1]
        line, character = self._rng.choices(numbers, weights, k=2)
        return {"line": line, "character": character}

    def _mutate(self, value: dict[str, Any]) -> Any:
        """A copy with up to two places replaced, removed or added."""
        changed: Any = copy.deepcopy(value)
        for _ in range(self._rng.randrange(3)):
            changed = self._mutated(changed)
        return changed

    def _mutated(self, value: Any) -> Any:
        rng = self._rng
        if not isinstance(value, (dict, list)) or not value or rng.random() < 0.15:
            return copy.deepcopy(rng.choice(JUNK))
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        what = rng.random()
        if what < 0.15:
            del value[key]
        elif what < 0.25 and isinstance(value, dict):
            value[str(rng.choice(JUNK))[:20]] = copy.deepcopy(rng.choice(JUNK))
        else:
            value[key] = self._mutated(value[key])
        return value

    def _any(self, depth: int) -> Any:
        rng = self._rng
        kind = rng.randrange(4) if depth else 0
        if kind == 1:
            return [self._any(depth - 1) for _ in range(rng.randrange(3))]
        if kind >= 2:
            keys = ["textDocument", "uri", "position", "id", "value", "token", "x"]
            return {rng.choice(keys): self._any(depth - 1) for _ in range(rng.randrange(4))}
        return copy.deepcopy(rng.choice(JUNK))

    def _request(self, method: str, params: Any, label: str) -> Shot:
        message_id = self._new_id()
        body = encoded({**self._envelope(method, params), "id": message_id})
        return Shot(framed(body), label, must=message_id)

    def _notification(self, method: str, params: Any, label: str) -> Shot:
        return Shot(framed(encoded(self._envelope(method, params))), label)

    def _envelope(self, method: str, params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    def _new_id(self) -> MessageId:
        self._next += 1
        return self._next if self._rng.random() < 0.8 else f"s{self._next}"
