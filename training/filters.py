"""Which Python files are worth learning from, and the form in which they are kept."""

import ast
import re
import warnings

MINIMUM_CHARACTERS = 300
_MAXIMUM_BYTES = 400_000
_MAXIMUM_LINE = 1_000
_MAXIMUM_NON_ASCII = 0.03
_MINIMUM_LETTERS = 0.35
_MAXIMUM_DATA_LINES = 0.5
_HEAD_CHARACTERS = 3_000

_UNWANTED_FOLDERS = frozenset(
    {
        *("test", "tests", "testing", "_testing", "testdata", "test_data", "fixtures"),
        *("vendor", "_vendor", "vendored", "_vendored", "third_party", "thirdparty"),
        *("extern", "externals", "external", "_external", "_externals", "node_modules"),
        *("benchmarks", "locale", "locales", "migrations", "site-packages"),
        *("pb2", "generated", "_generated"),
    }
)
_UNWANTED_NAME = re.compile(
    r"^(?:test_.*|.*_tests?|tests|conftest|.*_pb2(?:_grpc)?|_?version|versioneer|.*_pb|"
    r"parsetab|lextab|yacctab|_?generated_.*|.*_generated)\.py$"
)
_GENERATED = re.compile(
    r"do not edit|auto-?generated|(?:automatically|machine)[ -]generated|"
    r"code generated|file (?:was|is|has been)?\s*generated|generated (?:by|from) (?:the )?"
    r"(?:protocol|swagger|openapi|grpc|thrift|antlr|cython|our openapi)",
    re.IGNORECASE,
)
_COPYLEFT_TEXT = re.compile(
    r"General Public Licen[sc]e|\b[AL]?GPL(?:v[23]|-[23]|\b)|Mozilla Public Licen[sc]e|"
    r"SPDX-License-Identifier:\s*(?:[AL]?GPL|MPL|EPL|CC-BY-NC)|"
    r"Creative Commons.{0,40}NonCommercial|"
    r"NVIDIA CORPORATION.{0,200}proprietary",
    re.IGNORECASE | re.DOTALL,
)
_SECRET = re.compile(
    r"""-----BEGIN\ [A-Z ]*PRIVATE\ KEY
      | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
      | \bgh[pousr]_[A-Za-z0-9]{30,}
      | \bgithub_pat_[A-Za-z0-9_]{30,}
      | \bxox[abprs]-[0-9A-Za-z-]{20,}
      | \bAIza[0-9A-Za-z_-]{35}
      | \b[sr]k_live_[0-9A-Za-z]{16,}
      | \bhf_[A-Za-z]{30,}
      | \beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.
    """,
    re.VERBOSE,
)
_ASSIGNED_SECRET = re.compile(
    r"""(?i:token|secret|passw(?:or)?d|api_?key|access_?key|private_?key)\w*["']?\s*
        (?::\s*\w+\s*)?[:=]\s*[bru]{0,2}["']([0-9A-Za-z+/=_-]{24,})["']""",
    re.VERBOSE,
)
_HEADER_COMMENT = re.compile(r"(?:[ \t]*#[^\n]*(?:\n|\Z)|[ \t]*\n)+")
_HEADER_STRING = re.compile(r'\s*[rRuU]?("""|\'\'\')(.*?)\1[ \t]*\n*', re.DOTALL)
_LEGAL_WORDS = re.compile(r"licen[sc]e|copyright|all rights reserved|coding[:=]", re.IGNORECASE)
_LEGAL_PROSE = re.compile(r"copyright|all rights reserved|licensed under", re.IGNORECASE)
_DATA_LINE = re.compile(r"""^[\[({]*\s*(?:[rbu]?["'].*|-?[0-9.].*)[,\])}:]+$|^[\[\](){},]+$""")


def wanted_path(path: str) -> bool:
    """False for tests, vendored code and generated modules, judged by the name in the wheel."""
    *folders, name = path.split("/")
    if not name.endswith(".py") or _UNWANTED_NAME.match(name):
        return False
    return not any(
        folder.lower() in _UNWANTED_FOLDERS or folder.endswith((".data", ".dist-info"))
        for folder in folders
    )


def has_secret(text: str) -> bool:
    """True when the text holds something that looks like a credential, real or invented."""
    if _SECRET.search(text):
        return True
    return any(_looks_random(match.group(1)) for match in _ASSIGNED_SECRET.finditer(text))


def _looks_random(value: str) -> bool:
    """Tells a hexadecimal or base64 value from a long identifier."""
    has_digit = any(character.isdigit() for character in value)
    if re.fullmatch(r"[0-9a-fA-F]{24,}", value):
        return has_digit
    mixed_case = value.lower() != value and value.upper() != value
    return has_digit and mixed_case


def normalise(text: str) -> str:
    """Line ends, tabs and blank space in one form; ends in exactly one newline."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    lines = [line.rstrip() for line in text.expandtabs(4).split("\n")]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n") + "\n"


def strip_legal_header(text: str) -> str:
    """Removes leading comments or a leading string about copyright and licence."""
    comment = _HEADER_COMMENT.match(text)
    if comment and _LEGAL_WORDS.search(comment.group()):
        text = text[comment.end() :]
    string = _HEADER_STRING.match(text)
    if string and _LEGAL_PROSE.search(string.group(2)):
        text = text[string.end() :]
    return text.lstrip("\n")


def is_data_like(text: str) -> bool:
    """True for tables written as Python: most lines are literals or few characters letters."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return True
    letters = sum(map(str.isalpha, text)) / len(text)
    literals = sum(bool(_DATA_LINE.match(line)) for line in lines) / len(lines)
    return letters < _MINIMUM_LETTERS or literals > _MAXIMUM_DATA_LINES


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def rejection(text: str) -> str | None:
    """The reason not to learn from a normalised text, or None when it is good."""
    head = text[:_HEAD_CHARACTERS]
    if max(map(len, text.split("\n"))) > _MAXIMUM_LINE:
        return "minified"
    if _GENERATED.search(head):
        return "generated"
    if _COPYLEFT_TEXT.search(head) or "General Public License" in text:
        return "copyleft text"
    if not text.isascii() and sum(ord(c) > 127 for c in text) / len(text) > _MAXIMUM_NON_ASCII:
        return "not ASCII"
    if has_secret(text):
        return "secret"
    if is_data_like(text):
        return "data"
    return None if _parses(text) else "does not parse"


def clean(raw: bytes) -> tuple[str | None, str]:
    """Turns a file into training text.

    Returns:
      The text and an empty reason, or None and the reason for leaving it out.
    """
    if not MINIMUM_CHARACTERS <= len(raw) <= _MAXIMUM_BYTES:
        return None, "size"
    try:
        text = normalise(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return None, "not UTF-8"
    reason = rejection(text)
    if reason:
        return None, reason
    text = strip_legal_header(text)
    return (text, "") if len(text) >= MINIMUM_CHARACTERS else (None, "size")
