"""The text around a cursor as a model may see it: secrets masked, every column where it was."""

from __future__ import annotations

import msgspec

from dg_lsp.privacy.secrets import masked, masked_lately, may_hold_key
from dg_lsp.prompts.settings import Budget
from dg_lsp.prompts.view import CursorView, near

CHARS_A_TOKEN = 6
"""More than the tokens of a prompt have on average: dg-tiny's have 3 in Python."""


def masked_view(view: CursorView) -> CursorView:
    """`view` with secrets masked on both sides; the same object where there are none."""
    return masked_around(view, "")[0]


def prompt_view(view: CursorView, budget: Budget) -> tuple[CursorView, bool]:
    """What of a view a prompt may need, secrets masked, and whether there were any.

    To look through text that no prompt has room for would take longer than all the rest.
    """
    if may_hold_key(view.before) or may_hold_key(view.after):
        shown = masked_view(view)
        return shown, shown is not view
    sides = CHARS_A_TOKEN * budget.prompt, CHARS_A_TOKEN * budget.suffix
    part = near(view, *sides)
    if _cuts_a_line(view, part):  # a part of a secret does not look like one
        shown = masked_view(view)
        return near(shown, *sides), shown is not view
    shown = masked_view(part)
    return shown, shown is not part


def _cuts_a_line(view: CursorView, part: CursorView) -> bool:
    """Whether a part of a view begins or ends inside of a line."""
    first, last = len(view.before) - len(part.before), len(part.after)
    starts_inside = first > 0 and view.before[first - 1] != "\n"
    return starts_inside or (last < len(view.after) and view.after[last] != "\n")


def masked_around(view: CursorView, region: str) -> tuple[CursorView, str]:
    """A view and the text between its sides, masked as the one text that they are.

    A cursor may stand inside a secret, and lines may be the middle of a private key.
    """
    above = view.before[: view.before.rfind("\n") + 1]
    rest = region + view.after
    end = rest.find("\n", len(region))
    below = rest[end:] if end >= 0 else ""
    here = view.before[len(above) :] + rest[: len(rest) - len(below)]
    if any(map(may_hold_key, (above, here, below))):
        shown = masked(above + here + below)
    else:  # then each line is masked by itself
        shown = masked_lately(above) + masked(here) + masked_lately(below)
    start, end = len(view.before), len(view.before) + len(region)
    before, inside, after = shown[:start], shown[start:end], shown[end:]
    if (before, inside, after) == (view.before, region, view.after):
        return view, region
    return msgspec.structs.replace(view, before=before, after=after), inside
