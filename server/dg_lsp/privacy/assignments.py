"""Literals that are assigned to a name which says that they are secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dg_lsp.privacy.looks import (
    holds_any,
    is_about_secrets,
    is_key_material,
    is_placeholder,
    is_random,
    is_wordy,
)

MIN_CHARS = 8
"""A shorter literal is too often a mere word."""
KEY_MARK = "PRIVATE KEY"
"""Where a private key begins and ends; it may go on for many lines, so it is masked elsewhere."""

_STRICT = r"passwords?|passwd|passphrase|passcode|pwd|secrets?"
_LOOSE = (
    r"tokens?|(?:api|access|private|auth|encryption|signing|account|master)[_-]?keys?"
    r"|secret[_-]?(?:access[_-]?)?keys?|credentials?|bearer|authorization"
)
_KEYED = r"keys?|salt|seed|signature|hmac|nonce|cipher|session|cookie|auth|cert"
_MORE = (
    r"(?:[_-]?(?:value|string|str|hash|raw|b64|base64|hex|prod|production|dev|development|staging"
    r"|live|test|default|old|new|\d{1,3})){0,2}"
)
_TYPE = r"(?:\s{0,4}\??:\s{0,4}[\w.&\[\]|?<>\ ]{1,40}(?=\s{0,4}=))?"
_OPERATOR = r"(?P<operator>:=|=>|={1,3}|!=|[:=(,])"
_NAMED = rf"(?:(?P<loose>{_LOOSE})|(?P<strict>{_STRICT})|(?P<keyed>{_KEYED})){_MORE}"
_BEFORE = rf"{_NAMED}[\"'`\])]{{0,3}}{_TYPE}\s{{0,20}}{_OPERATOR}\s{{0,20}}"
_LITERAL_FOLLOWS = re.compile(rf"{_BEFORE}[a-z@$]{{0,2}}$")
"""Against what stands before a literal, in lower case."""
_OPERATOR_FOLLOWS = re.compile(r"[=:>(,]\s{0,20}[a-z@$]{0,2}$")
_LOOK_BACK, _LOOK_BACK_OVER_TYPE = 72, 132
"""Characters before a literal in which its name is looked for."""

_LITERAL = re.compile(
    r'"""(?P<triple>(?:[^"\\]|\\.|"(?!""))*+)(?:""")?'
    r"|'''(?P<triple_single>(?:[^'\\]|\\.|'(?!''))*+)(?:''')?"
    r'|"(?P<double>(?:[^"\\]|\\.)*+)"?'
    r"|`(?P<back>(?:[^`\\]|\\.)*+)`?"
    # In prose an apostrophe follows a letter; in code only a prefix such as b or rb does.
    r"|(?:(?<![A-Za-z0-9])|(?<=\b[bBrRuUfF])|(?<=\b[bBrRfF][bBrRfF]))"
    r"'(?P<single>(?:[^'\\]|\\.)*+)'?"
    r"|\\."
)
_BARE = re.compile(
    rf"{_BEFORE}(?P<bare>[^\s\"'`,;(){{}}\[\]<>\\]{{{MIN_CHARS},256}})(?=[\s\"'`,;&]|$)",
    re.IGNORECASE,
)
_SETTING = re.compile(r"\s*(?:export\s+|set\s+|-\s+|--)?[\w.-]*\s?[:=]\s?\S+\s*(?:#.*)?$")
_LONGEST_SETTING = 500

_HINT_WORDS = (
    "pass pwd secret token key credential bearer authorization cookie salt seed signature hmac "
    "nonce cipher session auth cert"
)
HINTS = tuple(_HINT_WORDS.split())
"""Of which one is in every line with a secret of these kinds, in lower case."""

Span = tuple[int, int]


def assigned_secrets(line: str) -> Iterator[Span]:
    """Where literals stand in a line that are assigned to secret-sounding names."""
    setting = len(line) <= _LONGEST_SETTING and _SETTING.match(line) is not None
    end = 0
    for found in _LITERAL.finditer(line):
        if found.lastgroup is None:
            continue
        start, stop = found.span(found.lastgroup)
        yield from _bare_secrets(line, end, found.start(), setting=setting)
        end = found.end()
        if stop - start < MIN_CHARS:
            continue
        before = _named_before(line, found.start())
        if before is not None and _is_secret(before, line[start:stop]):
            yield start, stop
    yield from _bare_secrets(line, end, len(line), setting=setting)


def assigned_secrets_of_a_part(part: str) -> Iterator[Span]:
    """As `assigned_secrets`, where the line may begin in a literal before `part` does.

    Then what looks like literals is what stands between them.
    """
    yield from assigned_secrets(part)
    for quote in filter(part.__contains__, "\"'`"):
        for start, stop in assigned_secrets(quote + part):
            yield max(start - 1, 0), stop - 1


def _named_before(line: str, literal: int) -> re.Match[str] | None:
    """The name and the operator right before a literal, if the name sounds secret."""
    head = line[max(0, literal - _LOOK_BACK) : literal].lower()
    operator = _OPERATOR_FOLLOWS.search(head)
    if operator is None:
        return None
    if operator[0].startswith("=") and ":" in head:
        head = line[max(0, literal - _LOOK_BACK_OVER_TYPE) : literal].lower()
    return _LITERAL_FOLLOWS.search(head) if holds_any(head, HINTS) else None


def _is_secret(before: re.Match[str], value: str) -> bool:
    if KEY_MARK in value or is_placeholder(value):
        return False
    operator: str = before["operator"]
    compared = operator in ("==", "===", "!=")
    if operator in "(," or (compared and not before["strict"]):
        # An argument or a default, not an assignment.
        return is_random(value) or is_key_material(value)
    if before["keyed"]:
        return is_key_material(value)
    if before["strict"]:
        return not (is_about_secrets(value) and is_wordy(value))
    return " " not in value.strip() and not is_wordy(value) and "://" not in value


def _bare_secrets(line: str, start: int, end: int, *, setting: bool) -> Iterator[Span]:
    """Secrets without quotes, as in YAML, INI, shell and on command lines."""
    for found in _BARE.finditer(line, start, end):
        value = found["bare"]
        if is_placeholder(value) or found["operator"] not in ("=", ":"):
            continue
        plain = setting and bool(found["strict"]) and not is_wordy(value) and _is_mixed(value)
        if plain or is_random(value, min_length=20) or is_key_material(value):
            yield found.span("bare")


def _is_mixed(value: str) -> bool:
    """Whether a value has letters and digits and nothing that makes it an expression."""
    return (
        any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and re.search(r"\.[A-Za-z_]|->|::", value) is None
    )
