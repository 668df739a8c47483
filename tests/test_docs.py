"""Pages name files that exist, and links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "*/README.md", "clients/*/README.md", "bench/results/*.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
)
_NAMED = re.compile(
    r"`((?:server|engine|kernels|clients|training|bench|scripts|tests|docs|models)/[\w./-]+)`"
)
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_and_linked_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    named = [name for name in _NAMED.findall(text) if not (ROOT / name).exists()]
    linked = [link for link in _LINK.findall(text) if not (page.parent / link).exists()]
    assert (named, linked) == ([], [])


@pytest.mark.parametrize(
    "folder",
    ["server", "engine", "kernels", "clients", "training", "models", "bench", "scripts", "tests"],
)
def test_a_folder_says_what_is_in_it(folder: str) -> None:
    assert (ROOT / folder / "README.md").is_file()


_ROW = re.compile(
    r"^\| (?P<what>.+?) \| (?P<figures>.+?) \| `(?P<page>bench/results/\w+\.md)` \|$", re.M
)
_FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)%?")
FIGURES = [
    (row["page"], figure)
    for row in _ROW.finditer((ROOT / "docs" / "limits.md").read_text("utf-8"))
    for figure in _FIGURE.findall(f"{row['what']} {row['figures']}")
]


def test_the_page_of_limits_has_figures() -> None:
    assert len(FIGURES) > 30


@pytest.mark.parametrize(("page", "figure"), FIGURES)
def test_a_figure_of_the_page_of_limits_stands_in_the_page_that_it_names(
    page: str, figure: str
) -> None:
    assert figure in _FIGURE.findall((ROOT / page).read_text("utf-8"))


README_SHARES = re.findall(r"\| (\d+\.\d) % \|$", (ROOT / "README.md").read_text("utf-8"), re.M)


def test_the_readmes_table_of_how_good_dg_tiny_is_is_that_of_the_results() -> None:
    rows = re.findall(
        r"^\| (?:default|known length, 8 steps|causal line alone|twin) \| (\d+\.\d)%",
        (ROOT / "bench" / "results" / "quality.md").read_text("utf-8"),
        re.M,
    )
    assert rows[:4] == README_SHARES
