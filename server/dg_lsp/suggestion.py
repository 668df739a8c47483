"""From a filled hole to the text that is offered: small pure filters, one after another.

A filter takes the text so far and the place, and returns the text that is left of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import msgspec

from dg_lsp.brackets import Balance, Balances, balance_of, cut_where_balanced
from dg_lsp.indentation import habit_around, put_in_habit
from dg_lsp.languages import comment_mark
from dg_lsp.privacy.secrets import holds_mask
from dg_lsp.prompts.view import CursorView
from dg_lsp.quotes import cut_where_quotes_close, leaves_quote_open
from dg_lsp.scope import (
    enclosing_indents,
    indent_of,
    is_behind_the_end,
    is_header,
    is_in_text,
    is_inside_its_block,
)
from dg_lsp.syntax.checks import cut_where_parsed
from dg_lsp.syntax.grammars import LANGUAGES
from dg_lsp.syntax.window import window_of

Filter = Callable[[str, "Place"], str]

BALANCE_CHARS = 4_000
"""How far on each side of the cursor brackets are counted."""
_MEANING_CHARS = 4
"""A line with fewer characters than this (`}`, `end`) may well stand twice in a row."""
_OF_ROWS = frozenset({"html", "json"})
"""Languages whose files may well have one line many times."""
_TRIPLE = re.compile(r"\"\"\"|'''")
_IMPORT = re.compile(r"(?:import|from|use|using|#include)\b")
_WORD = re.compile(r"\w+")


class Place(msgspec.Struct, frozen=True, dict=True):
    """Where a suggestion would stand, and whether it may be more than one line."""

    view: CursorView
    multi_line: bool
    masked: bool = False
    """Whether the model saw masks in place of secrets."""

    @property
    def bracketed(self) -> tuple[str, str]:
        """The text on both sides in which brackets are counted; whole lines, so that a key leaves
        what is above the cursor's as it was."""
        before = self.view.before
        start = max(len(before) - BALANCE_CHARS, 0)
        start = start and (before.find("\n", start) + 1 or start)
        return before[start:], self.view.after[:BALANCE_CHARS]

    @cached_property
    def balances(self) -> Balances:
        """What `balance_with` needs to know, whatever the text."""
        return Balances(*self.bracketed, self.view.language)

    def balance_with(self, text: str) -> Balance:
        """Brackets without a partner around the cursor once `text` stands there."""
        return self.balances.with_text(text)

    def faults_with(self, text: str) -> int:
        """How many these are."""
        return self.balance_with(text).faults


class Suggestion(msgspec.Struct, frozen=True):
    """The text to insert, or one sentence on why there is none."""

    text: str
    reason: str = ""


def suggestion_of(answer: str, place: Place) -> Suggestion:
    """Run every filter over a model's answer."""
    text = answer
    for apply, reason in FILTERS:
        text = apply(text, place)
        if not text:
            return Suggestion("", reason)
    return Suggestion(text)


def first_line(text: str, place: Place) -> str:
    """Only what stands before a line break, unless several lines are wanted."""
    return text if place.multi_line else text.partition("\n")[0]


def trimmed(text: str, place: Place) -> str:
    """Without white space at the end, and empty when there is nothing else.

    A blank stays that keeps the text apart from a word: `c + ` before the `b` of `a = |b`.
    """
    if not text.strip():
        return ""
    following = place.view.line_after[:1]
    kept = text.rstrip()
    apart = text.startswith(kept + " ") and (following.isalnum() or following in tuple("_\"'([{"))
    return kept + (" " if apart and text.endswith(" ") else "")


def in_the_files_habit(text: str, place: Place) -> str:
    """With tabs where the file indents by tabs, and with blanks where it does so."""
    view = place.view
    if "\n" not in text and not (text[:1] in " \t" and not view.line_before.strip()):
        return text
    around = view.before[-BALANCE_CHARS:] + view.after[:BALANCE_CHARS]
    return put_in_habit(text, view.line_before, habit_around(around, view.language))


def with_words_apart(text: str, place: Place) -> str:
    """Nothing, when it would run into what stands behind the cursor.

    `doc` before `doc=1` makes `docdoc=1`; `ter` in `regis|ter` says again what is there, though
    anything else may be missing inside a word. In front of a whole line, neither more words before
    those of a docstring, code before its comment nor `else:` before its statement is wanted.
    """
    before, after = place.view.line_before, place.view.line_after
    if _WORD.match(after) and _WORD.fullmatch(text):
        return "" if _WORD.match(before[-1:]) is None or after.startswith(text) else text
    if before.strip() or not after.strip() or "\n" in text:
        return text
    is_comment = after.startswith(comment_mark(place.view.language))
    in_the_way = is_comment or is_header(text, place.view.language) or is_in_text(place.view)
    return "" if in_the_way else text


def without_repeated_rest(text: str, place: Place) -> str:
    """Without an ending that already stands behind the cursor on its line.

    `foo(a|)` and `b)` leave `b`; `f(g(|)` and `x)` stay, for both brackets are needed.
    """
    rest = place.view.line_after.strip()
    last = text.rpartition("\n")[2]
    for length in range(min(len(rest), len(last)), 0, -1):
        if not last.endswith(rest[:length]):
            continue
        kept = text[: len(text) - length]
        whole = length == len(rest) or length >= _MEANING_CHARS
        with_it, without_it = place.faults_with(text), place.faults_with(kept)
        if without_it < with_it or (whole and without_it == with_it):
            return trimmed(kept, place)
    return text


def without_repeated_lines(text: str, place: Place) -> str:
    """Without last lines that the following lines say again; a lone closer goes only if stray."""
    if place.view.line_after.strip():
        return text
    lines = text.split("\n")
    following = _first_lines(place.view.after, len(lines))
    # Compared as it will stand in the file: the first line behind what is typed already.
    whole = [place.view.line_before + lines[0], *lines[1:]]
    whole = [line.strip() for line in whole]
    for count in range(min(len(whole), len(following)), 0, -1):
        if whole[-count:] != following[:count]:
            continue
        kept = "\n".join(lines[:-count])
        telling = any(len(line) >= _MEANING_CHARS for line in following[:count])
        if telling or place.faults_with(kept) < place.faults_with(text):
            return kept.rstrip()
    return text


def _first_lines(after: str, most: int) -> list[str]:
    """The first lines below the cursor's that hold something, without the space around it."""
    found: list[str] = []
    start = after.find("\n") + 1
    while start and len(found) < most:
        end = after.find("\n", start)
        line = after[start:].strip() if end < 0 else after[start:end].strip()
        if line:
            found.append(line)
        start = end + 1
    return found


def at_the_indentation(text: str, place: Place) -> str:
    """Without white space of its own where the cursor is inside the block already."""
    first, *others = text.split("\n")
    lead = first[: len(first) - len(first.lstrip(" \t"))]
    if not lead or not is_inside_its_block(place.view):
        return text
    deep = place.view.line_before + lead
    if all(line.startswith(deep) for line in others if line.strip()):
        others = [line and place.view.line_before + line[len(deep) :] for line in others]
    return "\n".join([first.removeprefix(lead), *others])


def within_the_blocks(text: str, place: Place) -> str:
    """Cut before a line of Python whose indentation is that of no block around the cursor.

    Lines in brackets and strings may be indented as they like.
    """
    view = place.view
    if view.language != "python" or view.line_before.strip():
        return text
    first, *others = text.split("\n")
    widths = enclosing_indents(view)
    for count, line in enumerate(others):
        kept = "\n".join([first, *others[:count]])
        width = indent_of(line)
        if line.strip() and width < widths[0] and width not in widths and _is_whole(kept):
            return kept.rstrip()
    return text


def without_second_import(text: str, place: Place) -> str:
    """Nothing, when it would make an import that stands at the left margin already."""
    view = place.view
    whole = (view.line_before + text + view.line_after).rstrip()
    if not _IMPORT.match(whole):
        return text
    others = view.before.split("\n")[:-1] + view.after.split("\n")[1:]
    return "" if any(line.rstrip() == whole for line in others) else text


def where_it_is_run(text: str, place: Place) -> str:
    """Nothing, when the line above returned, raised or left the loop already; a remark may be."""
    return "" if is_behind_the_end(place.view) and not text.lstrip().startswith("#") else text


def _is_whole(text: str) -> bool:
    """Whether no bracket and no long string is open at the end of some Python."""
    return not balance_of(text, "python").open and not len(_TRIPLE.findall(text)) % 2


def without_the_line_above(text: str, place: Place) -> str:
    """Cut before a line that would say the one above it again, in a language of statements.

    Of 500 lines and rests of lines cut out of three packages none did.
    """
    view = place.view
    if view.language not in LANGUAGES - _OF_ROWS:
        return text
    above = view.before[: view.before.rfind("\n") + 1].rstrip().rpartition("\n")[2].strip()
    lines = text.split("\n")
    whole = [view.line_before + lines[0], *lines[1:]]
    whole[-1] += view.line_after
    for count, line in enumerate(whole):
        if len(above) >= _MEANING_CHARS and line.strip() == above:
            return "\n".join(lines[:count]).rstrip()
        above = line.strip() or above
    return text


def with_words_in_prose(text: str, place: Place) -> str:
    """Nothing, when it has no letter and stands in a comment or a string: a point is no help."""
    if any(char.isalpha() for char in text):
        return text
    comment = place.view.line_before.lstrip().startswith(comment_mark(place.view.language))
    return "" if comment or is_in_text(place.view) else text


def without_masks(text: str, place: Place) -> str:
    """Nothing, when the model copied the mask of a secret."""
    return "" if place.masked and holds_mask(text) else text


def with_balanced_brackets(text: str, place: Place) -> str:
    """Cut before a bracket that would be left without its partner."""
    if place.balance_with(text).is_no_worse_than(place.balance_with("")):
        return text
    before, after = place.bracketed
    language, several = place.view.language, place.multi_line
    return cut_where_balanced(before, text, after, language, several=several).rstrip()


def with_closed_quotes(text: str, place: Place) -> str:
    """Cut before a quote that would be left open on its line, where the line has none open yet.

    An apostrophe in a comment or a docstring opens nothing; the syntax tells.
    """
    view = place.view
    before, after = view.line_before, view.line_after
    if "\n" in text or leaves_quote_open(before + after, view.language):
        return text
    if not leaves_quote_open(before + text + after, view.language):
        return text
    window = window_of(view)
    if window is None or not window.faults_with(text):
        return text
    return cut_where_quotes_close(before, text, after, view.language).rstrip()


def with_no_worse_syntax(text: str, place: Place) -> str:
    """Cut back to what the code around the cursor takes without a fault more than it has."""
    window = window_of(place.view)
    if window is None:
        return text
    while (kept := cut_where_parsed(window, text)) != text:
        # What was cut may have closed a bracket.
        text = with_balanced_brackets(kept, place)
    return text


def with_line_endings(text: str, place: Place) -> str:
    """Line breaks as the document has them."""
    return text.replace("\n", place.view.newline)


FILTERS: list[tuple[Filter, str]] = [
    (first_line, "The model proposed nothing for this line."),
    (without_masks, "The proposal repeats a masked secret."),
    (trimmed, "The model proposed only white space."),
    (in_the_files_habit, "The model proposed only white space."),
    (at_the_indentation, "The model proposed only white space."),
    (within_the_blocks, "The proposal fits no block around the cursor."),
    (without_second_import, "The file imports this already."),
    (without_the_line_above, "The line above already says this."),
    (where_it_is_run, "The line above leaves the block, so nothing here would be run."),
    (with_words_in_prose, "The model proposed only points or figures for this text."),
    (with_words_apart, "The proposal would run into what follows the cursor."),
    (without_repeated_rest, "What follows the cursor already says this."),
    (without_repeated_lines, "The next lines already say this."),
    (with_closed_quotes, "The proposal would have left a quote open."),
    (with_balanced_brackets, "The proposal would have left a bracket without its partner."),
    (with_no_worse_syntax, "The proposal does not fit the syntax around the cursor."),
    (with_line_endings, ""),
]
"""The filters in their order, each with the reason it gives when nothing is left."""
