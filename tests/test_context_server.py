"""What the real server shows a model of other files: what is used, allowed, and still there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server_fixtures import Clients, clients
from tests.tiny_tokenizers import FIM_TOKENS, write_tokenizer
from tests.wire_client import WireClient

__all__ = ["clients"]

pytestmark = pytest.mark.asyncio

CANARY = "Kq7vR2mZ9tW4xLp8"
HELPERS = f'''
API_TOKEN = "{CANARY}"


def parse_line(line: str, *, strict: bool = False) -> list[str]:
    """Split a line."""
    return line.split(",")


class Reader:
    def read_all(self, path: str) -> str:
        return open(path).read()
'''
MAIN = """from helpers import API_TOKEN, Reader, parse_line
from secret_part import hidden_part

def main(line):
    hidden_part(API_TOKEN)
    fields = parse_line(line)
    return\x20
"""
CURSOR = (6, 11)
SIGNATURE = "def parse_line(line: str, *, strict: bool = False) -> list[str]: ..."


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    return write_tokenizer(folder, [*FIM_TOKENS, "<file_end>"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "main.py").write_text(MAIN)
    return tmp_path


class Writer:
    """Types at a cursor and looks at what the model is shown for it."""

    def __init__(self, client: WireClient, uri: str, line: int, column: int) -> None:
        self.client = client
        self.uri = uri
        self.line, self.column = line, column
        self._version = 1
        self._name = ""

    async def prompt(self) -> str:
        """What the model is shown for another name before the cursor."""
        old, self._name = self._name, f"v{self._version}"
        self.edit(self.uri, self.line, self.column, self._name, end=self.column + len(old))
        place = self.line, self.column + len(self._name)
        await self.client.answer(self.client.ask_completion(*place, kind=1, uri=self.uri))
        shown = (await self.client.request("test/shown", {}))["result"]
        return shown[-1]["prompt"]

    async def prompt_where(self, true: Callable[[str], bool], most: int = 500) -> str:
        """The first prompt of which something is true: the work in the background takes a while."""
        prompt = ""
        for _ in range(most):
            if true(prompt := await self.prompt()):
                return prompt
        raise AssertionError(f"never in {most} prompts; the last one is {prompt!r}")

    def edit(self, uri: str, line: int, column: int, text: str, *, end: int | None = None) -> None:
        self._version += 1
        start = {"line": line, "character": column}
        behind = {"line": line, "character": column if end is None else end}
        self.client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": self._version},
                "contentChanges": [{"range": {"start": start, "end": behind}, "text": text}],
            },
        )


async def writing(
    client: WireClient, root: Path, *, name: str = "main.py", cursor: tuple[int, int] = CURSOR
) -> Writer:
    """A server whose workspace is `root`, with one file open and a cursor in it."""
    await client.initialize(rootUri=root.as_uri(), initializationOptions={"prefetch": False})
    uri = (root / name).as_uri()
    client.open((root / name).read_text(), uri)
    return Writer(client, uri, *cursor)


async def test_the_model_sees_definitions_of_what_is_used(clients: Clients, project: Path) -> None:
    writer = await writing(await clients.process("1"), project)
    prompt = await writer.prompt_where(lambda shown: SIGNATURE in shown)
    assert "class Reader" not in prompt
    assert prompt.index(SIGNATURE) < prompt.index("def main(line)")
    assert 'return line.split(",")' not in prompt


async def test_a_secret_of_another_file_is_masked(clients: Clients, project: Path) -> None:
    writer = await writing(await clients.process("1"), project)
    await writer.prompt_where(lambda shown: f'API_TOKEN = "{"x" * len(CANARY)}"' in shown)
    shown = (await writer.client.request("test/shown", {}))["result"]
    assert CANARY not in str(shown)


EXCLUDED = {
    "an ignored file": (".gitignore", "secret_part.py\n", {}),
    "a file of .dgignore": (".dgignore", "secret_*\n", {}),
    "a setting": ("unused.txt", "", {"excludeFromContext": ["secret_part.py"]}),
}


@pytest.mark.parametrize("case", EXCLUDED)
@pytest.mark.parametrize("is_open", [False, True])
async def test_an_excluded_file_is_never_context(
    clients: Clients, project: Path, case: str, is_open: bool
) -> None:
    name, text, options = EXCLUDED[case]
    (project / name).write_text(text)
    secret = project / "secret_part.py"
    secret.write_text(f"def hidden_part(key, plain='{CANARY}'):\n    return key\n" * 2)
    client = await clients.process("1")
    await client.initialize(
        rootUri=project.as_uri(), initializationOptions={"prefetch": False, **options}
    )
    if is_open:
        client.open(secret.read_text(), secret.as_uri())
    uri = (project / "main.py").as_uri()
    client.open(MAIN, uri)
    writer = Writer(client, uri, *CURSOR)
    if is_open:
        writer.edit(secret.as_uri(), 1, 0, "# edited\n")
    await writer.prompt_where(lambda shown: SIGNATURE in shown)
    for _ in range(3):
        await writer.prompt()
    shown = (await client.request("test/shown", {}))["result"]
    assert CANARY not in str(shown)
    assert "def hidden_part" not in str(shown)


async def test_the_same_file_is_context_where_nothing_excludes_it(
    clients: Clients, project: Path
) -> None:
    (project / "secret_part.py").write_text("def hidden_part(key, plain):\n    return key\n")
    writer = await writing(await clients.process("1"), project)
    await writer.prompt_where(lambda shown: "def hidden_part(key, plain): ..." in shown)


async def test_an_ignore_file_that_comes_later_counts(clients: Clients, project: Path) -> None:
    writer = await writing(await clients.process("1"), project)
    await writer.prompt_where(lambda shown: SIGNATURE in shown)
    (project / ".gitignore").write_text("helpers.py\n")
    await writer.prompt_where(lambda shown: "parse_line(line: str" not in shown)


async def test_a_deleted_file_is_no_context_from_the_next_request_on(
    clients: Clients, project: Path
) -> None:
    writer = await writing(await clients.process("1"), project)
    await writer.prompt_where(lambda shown: SIGNATURE in shown)
    (project / "helpers.py").unlink()
    assert SIGNATURE not in await writer.prompt()


async def test_a_renamed_file_is_found_under_its_new_name(clients: Clients, project: Path) -> None:
    (project / "helpers.py").rename(project / "old.py")
    writer = await writing(await clients.process("1"), project)
    assert SIGNATURE not in await writer.prompt()
    (project / "old.py").rename(project / "helpers.py")
    await writer.prompt_where(lambda shown: SIGNATURE in shown)


async def test_a_file_in_a_new_folder_is_found(clients: Clients, project: Path) -> None:
    (project / "main.py").write_text(MAIN.replace("from helpers", "from new.helpers"))
    (project / "helpers.py").unlink()
    writer = await writing(await clients.process("1"), project)
    assert SIGNATURE not in await writer.prompt()
    (project / "new").mkdir()
    (project / "new" / "helpers.py").write_text(HELPERS)
    await writer.prompt_where(lambda shown: SIGNATURE in shown)


async def test_a_changed_file_is_read_again(clients: Clients, project: Path) -> None:
    writer = await writing(await clients.process("1"), project)
    await writer.prompt_where(lambda shown: SIGNATURE in shown)
    (project / "helpers.py").write_text("def parse_line(changed):\n    return 1\n")
    prompt = await writer.prompt_where(lambda shown: "def parse_line(changed): ..." in shown)
    assert SIGNATURE not in prompt


async def test_what_is_not_saved_yet_counts(clients: Clients, project: Path) -> None:
    writer = await writing(await clients.process("1"), project)
    helpers = (project / "helpers.py").as_uri()
    writer.client.open("def parse_line(unsaved):\n    return 1\n", helpers)
    await writer.prompt_where(lambda shown: "def parse_line(unsaved): ..." in shown)


async def test_the_last_edit_of_another_file_is_context(clients: Clients, project: Path) -> None:
    (project / "other.py").write_text("a = 1\n" * 40)
    writer = await writing(await clients.process("1"), project)
    other = (project / "other.py").as_uri()
    writer.client.open((project / "other.py").read_text(), other)
    writer.edit(other, 20, 0, "remember = 'this'\n")
    await writer.prompt_where(lambda shown: "remember = 'this'\na = 1" in shown)


async def test_the_class_around_is_shown_when_its_head_is_out_of_sight(
    clients: Clients, project: Path
) -> None:
    methods = "".join(f"    def step_{n}(self, a):\n        return a\n\n" for n in range(20))
    text = f"class Machine:\n    speed: int = 3\n\n{methods}    def last(self):\n        return \n"
    (project / "machine.py").write_text(text)
    cursor = (text.count("\n") - 1, 15)
    writer = await writing(await clients.process("1"), project, name="machine.py", cursor=cursor)
    await writer.prompt_where(
        lambda shown: "class Machine:\n    speed: int = 3\n    def step_0(self, a): ..." in shown
    )


async def test_lines_of_an_open_file_that_are_alike_are_context(
    clients: Clients, project: Path
) -> None:
    alike = "\n".join(f"    fields_{n} = parse_line(line, number_{n})" for n in range(8))
    (project / "main.py").write_text(f"def main(line):\n{alike}\n    return \n")
    twin = f"def twin(line):\n{alike}\n    return fields_3\n"
    writer = await writing(await clients.process("1"), project, cursor=(9, 11))
    writer.client.open(twin, (project / "twin.py").as_uri())
    await writer.prompt_where(lambda shown: "def twin(line):" in shown)


async def test_typing_leaves_the_context_where_it_is(clients: Clients, project: Path) -> None:
    writer = await writing(await clients.process("1"), project)
    prompt = await writer.prompt_where(lambda shown: SIGNATURE in shown)
    name = prompt.rpartition(" ")[2]
    for _ in range(5):
        again = await writer.prompt()
        assert again.removesuffix(again.rpartition(" ")[2]) == prompt.removesuffix(name)
