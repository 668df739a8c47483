"""Secrets are masked in place, ordinary code is left as it is, and no text takes long.

Every secret here is put together by the test, so that no file holds one that a scanner would find.
"""

from __future__ import annotations

import random
import string
import sysconfig
import time
from pathlib import Path

import pytest
from dg_lsp.lines import Lines
from dg_lsp.privacy.secrets import holds_mask, masked
from dg_lsp.privacy.views import masked_around, masked_view, prompt_view
from dg_lsp.prompts.settings import Budget
from dg_lsp.prompts.view import CursorView, view_at
from hypothesis import given, settings
from hypothesis import strategies as st

DRAW = random.Random(5)
LETTERS = string.ascii_letters + string.digits


def drawn(length: int, alphabet: str = LETTERS) -> str:
    """Characters as a generator of keys draws them."""
    return "".join(DRAW.choices(alphabet, k=length))


HEX = "0123456789abcdef"
BASE64 = LETTERS + "+/"
CANARY = drawn(24)

TOKENS = {
    "AWS": ("AKIA", drawn(16, string.ascii_uppercase + "234567")),
    "AWS, temporary": ("ASIA", drawn(16, string.ascii_uppercase + "234567")),
    "Google": ("AIza", drawn(35)),
    "Google, OAuth": ("ya29.", drawn(60)),
    "Google, client": ("GOCSPX-", drawn(28)),
    "GitHub": ("ghp_", drawn(36)),
    "GitHub, server": ("ghs_", drawn(36)),
    "GitHub, fine-grained": ("github_pat_", drawn(22) + "_" + drawn(59)),
    "GitLab": ("glpat-", drawn(20)),
    "Slack": ("xoxb-", f"{drawn(12, string.digits)}-{drawn(12, string.digits)}-{drawn(24)}"),
    "Stripe": ("sk_live_", drawn(24)),
    "Stripe, test": ("rk_test_", drawn(24)),
    "Anthropic": ("sk-ant-", "api03-" + drawn(60)),
    "OpenAI": ("sk-proj-", drawn(60)),
    "OpenAI, old": ("sk-", drawn(48)),
    "npm": ("npm_", drawn(36)),
    "PyPI": ("pypi-", drawn(120)),
    "Hugging Face": ("hf_", drawn(34)),
    "SendGrid": ("SG.", drawn(22) + "." + drawn(43)),
    "Databricks": ("dapi", drawn(32, HEX)),
    "Azure storage": ("AccountKey=", drawn(86, BASE64) + "=="),
    "JWT": ("eyJ", drawn(33) + ".eyJ" + drawn(40) + "." + drawn(43)),
    "bearer": ("Bearer ", drawn(32)),
}


@pytest.mark.parametrize("issuer", TOKENS)
@pytest.mark.parametrize(
    "around", ['x = "{}"', "curl -H 'A: {}' url", "# {}", "{}", "({})", "a={}"]
)
def test_an_issued_token_is_masked_wherever_it_stands(issuer: str, around: str) -> None:
    mark, secret = TOKENS[issuer]
    assert masked(around.format(mark + secret)) == around.format(mark + "x" * len(secret))


ASSIGNED = {
    "python": 'password = "{}"',
    "python, bytes": "SECRET_KEY = b'{}'",
    "annotated": 'api_key: str = "{}"',
    "attribute": 'self.db_password = "{}"',
    "item": 'os.environ["API_TOKEN"] = "{}"',
    "argument": 'connect(user="me", password="{}")',
    "comparison": 'if password == "{}":',
    "default": 'os.getenv("API_TOKEN", "{}")',
    "triple": 'secret = """{}"""',
    "unfinished": 'password = "{}',
    "json": '  "client_secret": "{}",',
    "javascript": "const apiKey = '{}';",
    "template": "token: `{}`,",
    "go": 'accessToken := "{}"',
    "ruby": ":password => '{}'",
    "rust": 'let auth_token: &str = "{}";',
    "yaml": "password: {}",
    "yaml, quoted": "api-key: '{}'",
    "shell": "export DB_PASSWORD={}",
    "ini": "aws_secret_access_key = {}",
    "option": "run --token={} --verbose",
    "named": 'password_prod = "{}"',
    "numbered": 'token2 = "{}"',
    "url": "postgres://me:{}@host/db",
    "escaped": 'password = "\\"{}"',
    "prose before": 'print("don\'t"); password = "{}"',
}


@pytest.mark.parametrize("way", ASSIGNED)
def test_a_literal_is_masked_that_is_assigned_to_a_secret_name(way: str) -> None:
    shown = masked(ASSIGNED[way].format(CANARY))
    assert CANARY not in shown
    head, tail = ASSIGNED[way].split("{}")
    assert shown.endswith("x" * len(CANARY) + tail)
    assert shown[: len(head)].replace("x", "") in head.replace("x", "") or way == "escaped"


KEYS = {
    "hexadecimal": f'encryption_key = "{drawn(64, HEX)}"',
    "base64": f'signing_key = "{drawn(43, BASE64)}="',
    "salt": f"SALT = '{drawn(32, HEX)}'",
    "bare": f"session_key={drawn(64, HEX)}",
}


@pytest.mark.parametrize("kind", KEYS)
def test_key_material_is_masked_that_is_called_a_key(kind: str) -> None:
    shown = masked(KEYS[kind])
    assert holds_mask(shown)
    assert len(shown) == len(KEYS[kind])


HARMLESS = [
    'password = ""',
    'password = "changeme"',
    'password = "change-me-please"',
    'password = "xxxxxxxxxxxx"',
    'password = "********"',
    'password = "${DB_PASSWORD}"',
    'password = "{{ vault.password }}"',
    'password = f"{password}"',
    'password = "%(password)s"',
    'password = "<your password>"',
    'password = "your-password-here"',
    'password = os.environ["DB_PASSWORD"]',
    'password = getpass.getpass("Password for the user: ")',
    'password = "short"',
    'input("Enter your password: ", end="")',
    '"password": "Enter your password",',
    'labels = {"token": "Token name"}',
    "token = tokenizer.next_token(stream)",
    'token_type = "access_token_v2"',
    'if token == "continue":',
    'raise ValueError("the secret is missing")',
    'PASSWORD_FIELD = "password_field"',
    'key = "first_name"',
    'cache_key = "users/by-name/all"',
    'primary_key = "user_account_identifier_column"',
    "sort_key=lambda token: token.position_in_source_text",
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: str = field(default_factory=make_password)",
    "token = $(cat /run/secrets/token)",
    "https://example.com/path?token=abc",
    "git@github.com:user/repository.git",
    "url = 'http://localhost:8080/a@b'",
    "postgres://user:${PASSWORD}@host/db",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    'sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
    'class="sk-estimator-doc-link sk-toggleable"',
    "from secrets import token_hex",
    "-----BEGIN CERTIFICATE-----",
    'if "-----BEGIN PRIVATE KEY-----" in text:\n    return\n',
]


@pytest.mark.parametrize("line", HARMLESS)
def test_ordinary_code_and_stand_ins_stay_as_they_are(line: str) -> None:
    assert masked(line) == line


def private_key(kind: str = "RSA ", lines: int = 6) -> str:
    body = "\n".join(drawn(64, BASE64) for _ in range(lines))
    mark = f"{kind}PRIVATE KEY"
    return f"-----BEGIN {mark}-----\n{body}\n{drawn(20, BASE64)}==\n-----END {mark}-----\n"


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_is_masked_between_its_marks(kind: str) -> None:
    key = private_key(kind)
    shown = masked(f"before = 1\n{key}after = 2\n")
    first, mark, *body, end, last, rest = shown.split("\n")
    assert (first, last, rest) == ("before = 1", "after = 2", "")
    assert (mark, end) == (key.split("\n")[0], key.split("\n")[-2])
    assert all(set(line) == {"x"} for line in body)


def test_a_private_key_on_one_line_is_masked() -> None:
    key = private_key("").replace("\n", "\\n")
    shown = masked(f'  "private_key": "{key}",')
    assert shown.count("\\n") == key.count("\\n")
    assert set(shown.split("-----")[2]) <= set("x\\n")


@pytest.mark.parametrize("cut", [1, 3, 6])
def test_a_private_key_is_masked_that_a_window_cuts_in_two(cut: int) -> None:
    lines = private_key().split("\n")
    above, below = "\n".join(lines[:cut]), "\n".join(lines[cut:])
    for text in (f"a = 1\n{above}\nb = 2", f"{below}b = 2"):
        shown = masked(text)
        kept = [line for line in shown.split("\n") if line and set(line) != {"x"}]
        assert all("PRIVATE KEY" in line or " = " in line for line in kept)


def test_a_cursor_inside_a_secret_splits_its_mask() -> None:
    view = CursorView("a.py", "python", f'password = "{CANARY[:7]}', f'{CANARY[7:]}"', True, True)
    shown = masked_view(view)
    assert (shown.before, shown.after) == ('password = "' + "x" * 7, "x" * 17 + '"')


def test_lines_inside_a_private_key_are_known_by_what_is_around_them() -> None:
    head, *body, end, _ = private_key().split("\n")
    view = CursorView("a", "plaintext", head, "\n" + end, True, True)
    region = "\n" + "\n".join(body)
    assert set(masked_around(view, region)[1]) == {"x", "\n"}


def test_lines_are_masked_together_as_each_by_itself() -> None:
    lines = [f'{name} = "{CANARY}"  # {n}' for n, name in enumerate(["password", "x", "Api_Key"])]
    lines = [*lines, "", "İ = 1", *lines[::-1], "pass", 'token = "short"'] * 3
    assert masked("\n".join(lines)).split("\n") == [masked(line) for line in lines]
    assert sum(CANARY in line for line in masked("\n".join(lines)).split("\n")) == 6


def test_what_no_prompt_has_room_for_is_left_out_before_it_is_masked() -> None:
    lines = [f"value_{number} = {number}\n" for number in range(2_000)]
    view = view_at(Lines.of("".join(lines)), 1_000, 0, path="a.py", language="python")
    shown, is_masked = prompt_view(view, Budget(prompt=400, suffix=100))
    assert not is_masked
    assert 2_400 <= len(shown.before) <= 2_400 + 64 * len(lines[-1])
    assert 600 <= len(shown.after) <= 600 + len(lines[-1])
    assert view.before.endswith(shown.before)
    assert view.after.startswith(shown.after)
    assert shown.before.startswith("value_832 =")  # a line whose number divides by 64
    assert (shown.at_start, shown.at_end) == (False, False)


def test_of_a_megabyte_on_one_line_a_prompt_gets_no_more_than_it_may_hold() -> None:
    text = "x = [" + "12345, " * 150_000 + "]\n"
    for column in (20_000, 500_000, len(text) - 2):
        view = view_at(Lines.of(text), 0, column, path="a.py", language="python")
        shown, is_masked = prompt_view(view, Budget(prompt=400, suffix=100))
        assert not is_masked
        assert 2_400 <= len(shown.before) < 2_400 + 4_096
        assert len(shown.after) <= 600 + 4_096
        assert view.before.endswith(shown.before)
        assert view.after.startswith(shown.after)
        assert (shown.at_start, shown.at_end) == (False, len(shown.after) == len(view.after))


def test_a_long_line_begins_where_it_began_while_one_types() -> None:
    starts = set[int]()
    for column in range(500_000, 504_096, 64):
        text = "x" * column
        view = view_at(Lines.of(text), 0, column, path="a.txt", language="plaintext")
        shown, _ = prompt_view(view, Budget(prompt=400, suffix=100))
        starts.add(column - len(shown.before))
    assert len(starts) == 2


@pytest.mark.parametrize("name", ["before", "after"])
def test_a_secret_that_is_cut_in_two_is_none_of_the_less_masked(name: str) -> None:
    item = f'{{"password": "{CANARY}"}}, '
    text = "[" + item * 20_000
    for column in range(250_000, 250_000 + len(item), 5):
        view = view_at(Lines.of(text), 0, column, path="a.json", language="json")
        shown, is_masked = prompt_view(view, Budget(prompt=400, suffix=100))
        assert is_masked
        side = getattr(shown, name)
        for length in (6, 12, 24):
            assert CANARY[:length] not in side
            assert CANARY[-length:] not in side


def test_a_private_key_counts_however_far_away_it_begins() -> None:
    before = private_key() + "a = 1\n" * 2_000
    view = CursorView("a.py", "python", before, "\nb = 2\n", True, True)
    shown, is_masked = prompt_view(view, Budget(prompt=400, suffix=100))
    assert is_masked
    assert len(shown.before) == len(before)


def test_a_view_without_secrets_is_the_same_object() -> None:
    view = CursorView("a.py", "python", "a = ", "\nb = 2\n", True, True)
    assert masked_view(view) is view


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("return 'xxxxxxxx'", True),
        ("a://me:xxx@host", True),
        ("//me:xxx@host", False),
        ("xx = 1", False),
        ("max_x = x * x", False),
    ],
)
def test_a_copied_mask_is_known(text: str, held: bool) -> None:
    assert holds_mask(text) is held


FRAGMENTS = st.sampled_from(
    [
        *("password", "token", "api_key", "secret", "key", "hunter22hunter", "x" * 9, "don't"),
        *("=", " = ", ":", ": ", ":=", "=>", '"', "'", "`", '"""', "\\", "$", "{", "}", "f(", ")"),
        *(" ", ",", "#", "@", "://", "\n", "\r\n", "\r", "\u2028", "\x0c", "é", "😀"),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", private_key(lines=2)),
        *(mark + secret for mark, secret in TOKENS.values()),
        *(CANARY, drawn(64, HEX), drawn(44, BASE64)),
    ]
)
TEXTS = st.lists(st.one_of(FRAGMENTS, st.text(max_size=12)), max_size=14).map("".join)


@settings(max_examples=600)
@given(TEXTS)
def test_masking_keeps_length_and_line_breaks_and_does_nothing_twice(text: str) -> None:
    shown = masked(text)
    assert [len(line) for line in shown.splitlines(True)] == [
        len(line) for line in text.splitlines(True)
    ]
    assert len(shown) == len(text)
    assert all(a in (b, "x") for a, b in zip(shown, text, strict=True))
    assert masked(shown) == shown


HOSTILE = {
    "one word": "a",
    "words": "password ",
    "assignments": 'password="',
    "quotes": '"',
    "escapes": '\\"',
    "apostrophes": "'a ",
    "urls": "://a:",
    "colons": "://::::",
    "signed": "eyJaaaaaaaaaa.",
    "signed, run together": "eyJ",
    "prefixes": "sk-",
    "prefixes, longer": "ghp_aaaa",
    "bare": "key=" + "a1" * 10 + ";",
    "bare, spaced": "token = a1b2c3d4e5f6 ",
    "keys": "-----BEGIN PRIVATE KEY-----",
    "key lines": "-----BEGIN PRIVATE KEY-----\n",
    "key ends": "-----END PRIVATE KEY-----\n",
    "base64": "Aa1+",
    "blanks": " ",
    "names": "key_",
    "types": "key: a.b.c.d.e ",
    "camels": "aB",
    "dots": "..",
    "braces": "password=${",
}


@pytest.mark.parametrize("shape", HOSTILE)
@pytest.mark.parametrize("broken", [False, True])
def test_a_megabyte_of_anything_takes_linear_time(shape: str, broken: bool) -> None:
    unit = HOSTILE[shape]

    def spent(size: int) -> float:
        text = unit * (size // len(unit))
        if broken:
            text = "\n".join(text[i : i + 997] for i in range(0, len(text), 997))
        started = time.process_time()
        masked(text)
        return time.process_time() - started

    small, large = spent(125_000), spent(1_000_000)
    assert large < 10
    # Eight times the text; quadratic time would be 64 times as much.
    assert large < 24 * small + 0.1


def test_hardly_a_line_of_the_standard_library_is_masked() -> None:
    """Measured over all of Python 3.11's library with its tests: 14 of 859,672 lines (0.0016 %),
    ten of them URLs with a password in tests of urllib."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in folder.glob("*.py") if path.is_file())
    lines = masked_lines = 0
    for path in files[::3]:
        text = path.read_text("utf-8", "replace")
        pairs = zip(text.split("\n"), masked(text).split("\n"), strict=True)
        changed = [a != b for a, b in pairs]
        lines += len(changed)
        masked_lines += sum(changed)
    assert lines > 10_000
    assert masked_lines / lines < 0.0005
