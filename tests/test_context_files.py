"""The files of a workspace: found in slices, few bytes each, ignored ones never."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dg_lsp.context.files import Files
from dg_lsp.context.keeper import Keeper, is_project
from dg_lsp.context.walk import walk
from dg_lsp.documents import Document, DocumentStore
from dg_lsp.privacy.gate import Gate

from tests.traced_memory import kept_by

FILES = 50_000
PER_FOLDER = 250
MOST_SECONDS = 8.0
"""Of processor time, to find the files."""
MOST_BYTES = 25_000_000
MOST_LAG_SECONDS = 0.02


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of 50,000 small files."""
    root = tmp_path_factory.mktemp("large")
    for number in range(FILES // PER_FOLDER):
        folder = root / f"package_{number // 20}" / f"part_{number}"
        folder.mkdir(parents=True)
        for other in range(PER_FOLDER):
            text = f"def value_{number}_{other}():\n    return {number}\n"
            (folder / f"module_{other}.py").write_text(text)
    return root


class Lag:
    """How long the event loop was away at most, in seconds of this process."""

    def __init__(self) -> None:
        self.lags: list[float] = []

    async def watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.lags.append(time.thread_time() - before)


_PREPARE_WALK = """
import asyncio
from pathlib import Path
from dg_lsp.context.files import Files
from dg_lsp.context.walk import walk
from dg_lsp.privacy.gate import Gate
gate, files = Gate([Path(sys.argv[1]).as_uri()]), Files()
"""
_WALK = "asyncio.run(walk(files, [sys.argv[1]], gate.may_enter))"


@pytest.mark.asyncio
async def test_a_large_repository_is_found_in_little_time_and_memory(large: Path) -> None:
    gate, files, lag = Gate([large.as_uri()]), Files(), Lag()
    watching = asyncio.ensure_future(lag.watch())
    started = time.process_time()
    await walk(files, [str(large)], gate.may_enter)
    seconds = time.process_time() - started
    watching.cancel()
    assert files.count == FILES
    assert seconds < MOST_SECONDS
    assert kept_by(_WALK, str(large), prepare=_PREPARE_WALK) < MOST_BYTES
    assert sorted(lag.lags)[len(lag.lags) * 99 // 100] < MOST_LAG_SECONDS
    place = large / "package_3" / "part_77" / "module_9.py"
    assert files.find("part_77/module_9.py", str(large / "a.py")) == [str(place)]


@pytest.mark.asyncio
async def test_a_definition_of_a_large_repository_is_read_when_it_is_used(large: Path) -> None:
    documents = DocumentStore()
    keeper = Keeper(documents)
    keeper.configure([large.as_uri()], Gate([large.as_uri()]))
    keeper.start()
    text = "from package_3.part_77.module_9 import value_77_9\n\nx = value_77_9()\n"
    document = Document.of((large / "a.py").as_uri(), 1, "python", text)
    documents.put(document)
    await keeper.settled()
    keeper.at(document, 2)
    await keeper.settled()
    assert [snippet.text for snippet in keeper.at(document, 2)] == ["def value_77_9(): ..."]
    keeper.close()


@pytest.fixture
def found(tmp_path: Path) -> Callable[[], Files]:
    """Looks for the files below a folder."""

    def find() -> Files:
        files = Files()
        asyncio.run(walk(files, [str(tmp_path)], Gate([tmp_path.as_uri()]).may_enter))
        return files

    return find


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")


def test_ignored_folders_links_and_tools_are_not_looked_into(
    tmp_path: Path, found: Callable[[], Files]
) -> None:
    write(tmp_path, "a.py", "b/c.py", "build/d.py", "node_modules/e/f.js", ".git/g.py", "h.txt")
    write(tmp_path, "b/out/i.py")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "b" / ".gitignore").write_text("out\n")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    files = found()
    assert files.count == 2
    assert {str(tmp_path / "a.py"), str(tmp_path / "b" / "c.py")} <= {
        path for folder in files.folders for path in files.in_folder(folder)
    }


def test_a_folder_that_an_ignore_file_takes_back_is_looked_into(
    tmp_path: Path, found: Callable[[], Files]
) -> None:
    write(tmp_path, "src/a.py", "other/b.py")
    (tmp_path / ".gitignore").write_text("/*\n!/src/\n")
    assert found().count == 1


def files_of(*paths: str) -> Files:
    files = Files()
    for path in paths:
        folder, _, name = path.rpartition("/")
        files.add_folder(folder, [name])
    return files


def test_the_nearest_of_several_files_is_meant() -> None:
    files = files_of("/w/a/x/util.py", "/w/b/x/util.py", "/w/b/util.py")
    assert files.find("x/util.py", "/w/b/main.py") == ["/w/b/x/util.py"]
    assert files.find("x/util.py", "/w/a/main.py") == ["/w/a/x/util.py"]
    assert files.find("y/util.py", "/w/a/main.py") == []


def test_a_package_is_its_own_file_and_a_folder_all_of_its_files() -> None:
    files = files_of("/w/p/__init__.py", "/w/q/__init__.py", "/w/m/util/b.go", "/w/m/util/a.go")
    assert files.find("p/__init__.py", "/w/main.py") == ["/w/p/__init__.py"]
    assert files.find("m/util/", "/w/main.go") == ["/w/m/util/a.go", "/w/m/util/b.go"]
    assert files.find("/w/q/__init__.py", "/w/main.py") == ["/w/q/__init__.py"]


def test_what_is_gone_is_not_found_again() -> None:
    files = files_of("/w/a/one.py", "/w/a/b/two.py", "/w/ab/three.py")
    files.remove("/w/a/one.py")
    assert files.find("one.py", "/w/x.py") == []
    files.remove("/w/a")
    assert files.find("two.py", "/w/x.py") == []
    assert (files.count, files.knows("/w/a/b")) == (1, False)
    assert files.find("three.py", "/w/x.py") == ["/w/ab/three.py"]
    files.remove("/w/never.py")
    assert files.count == 1


def test_a_disk_or_a_home_is_no_project(tmp_path: Path) -> None:
    assert is_project(str(tmp_path))
    assert not is_project(str(Path.home()))
    assert not is_project("")
    assert not is_project(str(tmp_path / "missing"))


def test_the_server_starts_without_looking_at_the_disk() -> None:
    code = (
        "import sys, dg_lsp.language_server\n"
        "print(*sorted({'watchfiles', 'anyio'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


def test_what_comes_later_is_found_though_it_was_asked_for_before() -> None:
    files = files_of("/w/a/one.py")
    assert files.find("two.py", "/w/x.py") == []
    files.add_folder("/w/b", ["two.py"])
    assert files.find("two.py", "/w/x.py") == ["/w/b/two.py"]
    files.add_folder("/w", ["two.py"])
    assert files.find("two.py", "/w/x.py") == ["/w/two.py"]
