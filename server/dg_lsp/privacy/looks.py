"""What a piece of text looks like: a stand-in, words, or drawn at random."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

_STAND_IN = re.compile(
    r"(?ix)^(?:"
    r"<.*>|\[.*\]|\{\{.*|\$.*|%.*|\#\{.*|\{[\w.\[\]'\"]*\}"  # a template says where it comes from
    r"|change[\s_-]?(?:me|this|it).*|(?:to)?do[\s_-]?change.*|(?:insert|replace|enter|put|paste)"
    r"[\s_-].*|your[\s_-].*|my[\s_-].{0,24}(?:password|secret|token|key).*|example.*|placeholder.*"
    r"|redacted.*|dummy.*|sample.*|not[\s_-]?(?:set|used|a[\s_-]).*|undefined|required|optional"
    r"|os\.environ.*|process\.env.*|env\..*|getenv.*|vault:.*|ssm:.*|secretref.*|\.{3,}.*"
    r")$"
)
_TELLS_OF_ITSELF = re.compile(r"(?i)pass|pwd|secret|token|\bkey\b|credential|auth")
_WORD = re.compile(r"[0-9]{0,3}[A-Za-z]*+[0-9]{0,4}")
_MIN_RANDOM = 16
_MAX_JUDGED = 512
"""Characters of a value that are judged; more say no more about it."""


def holds_any(text: str, hints: Iterable[str]) -> bool:
    """Whether one of some words in lower case stands in a text: cheap, and mostly no."""
    lowered = text.lower()
    return any(hint in lowered for hint in hints)


def is_placeholder(value: str) -> bool:
    """Whether a value only stands where a secret would: empty, `changeme`, `${VAR}`, `xxxx`."""
    value = value[:_MAX_JUDGED].strip()
    return len(set(value.lower())) <= 2 or _STAND_IN.match(value) is not None


def is_about_secrets(value: str) -> bool:
    """Whether a value is words about secrets ("Enter your password") or a name of one."""
    return _TELLS_OF_ITSELF.search(value[:_MAX_JUDGED]) is not None


def is_wordy(value: str) -> bool:
    """Whether a value is made of words, as names, titles and paths are, perhaps with numbers."""
    parts = re.split(r"[^A-Za-z0-9]+", value[:_MAX_JUDGED])
    return all(_is_word(part) for part in parts)


def is_random(value: str, *, min_length: int = _MIN_RANDOM) -> bool:
    """Whether a value of one piece looks drawn at random: digits among letters, few repeats."""
    value = value[:_MAX_JUDGED]
    if len(value) < min_length or not value.isascii() or " " in value:
        return False
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    return (
        digits >= 2
        and letters >= 2
        and _turns(value) >= len(value) / 5
        and not is_wordy(value)
        and entropy(value) >= 0.7 * math.log2(min(len(value), 32))
    )


def is_key_material(value: str) -> bool:
    """Whether a value is 32 or more hexadecimal or base64 digits with the entropy of a key."""
    value = value[:_MAX_JUDGED]
    if re.fullmatch(r"[0-9a-fA-F]{32,}", value):
        return entropy(value) >= 3.0
    if re.fullmatch(r"[A-Za-z0-9+/_-]{31,}={0,2}", value):
        return entropy(value) >= 4.0 and is_random(value)
    return False


def entropy(value: str) -> float:
    """Bits per character, by how often each character comes up in `value` itself."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def _is_word(part: str) -> bool:
    # Letters, as one or more words (`camelCase` is), or a short number, or both (`sha256`, `2fa`).
    if _WORD.fullmatch(part) is None:
        return False
    return len(part) < 8 or _turns(part) < len(part) / 2


def _turns(value: str) -> int:
    """How often the kind of character changes."""
    return sum(_kind(a) != _kind(b) for a, b in pairwise(value))


def _kind(character: str) -> int:
    if character.isdigit():
        return 0
    return 1 if character.islower() else 2 if character.isupper() else 3
