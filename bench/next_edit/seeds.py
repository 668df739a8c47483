"""Whether a seeded canvas says anything of a next edit: `python -m bench.next_edit.seeds`.

An instructed edit seeds the canvas with the old lines and keeps them for a step. Here the canvas
gets the line where an edit may be repeated, as it is and as the edit would make it, with the edit
in the prompt; `free` lets the model change every token from the first step on.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter

import msgspec
from dg_lsp.bench.next_edits import read_cases
from dg_lsp.cli.session import open_session, usable_model
from dg_lsp.completion import Completer
from dg_lsp.documents import Document
from dg_lsp.jobs import edit_job
from dg_lsp.next_edit.desk import NextEdits
from dg_lsp.next_edit.finder import found_after, texts, view_around
from dg_lsp.next_edit.guess import Place, edit_of
from dg_lsp.next_edit.proposal import Proposal


async def became(completer: Completer, place: Place, seed: str, *, free: bool) -> str:
    """What the model makes of a seeded line."""
    settings, prompt_format = completer.settings, completer.prompt_format
    view = view_around(place.lines, place.proposal.line, place.path, place.language)
    view = msgspec.structs.replace(view, context=(edit_of(place),))
    prompt = prompt_format.build(view, settings.budget)
    ids = prompt_format.encode(seed)
    job = edit_job("", prompt, ids, 0, prompt_format, settings)
    if free:
        job = msgspec.structs.replace(job, keep_seed_steps=0, max_steps=1)
    answer = await completer.ask(job)
    assert answer.frame is not None, answer.done.message
    return completer.tokenizer.decode(answer.frame.ids[0][: len(ids)])


async def count(completer: Completer) -> dict[str, Counter[str]]:
    """What became of every line, by what was seeded."""
    found: dict[str, Counter[str]] = {}
    for case in read_cases():
        desk = NextEdits()
        old = Document.of(f"file:///case/{case.path}", 1, "python", case.text)
        new = msgspec.structs.replace(old, lines=case.begun, version=2)
        desk.changed(old, new)
        edits = desk.history.of(new.uri)
        likely = found_after(new.lines, "python", edits).likely
        for proposal in likely[:1]:
            place = Place(new.lines, proposal, case.path, "python", edits[0])
            await _one(completer, place, proposal, found)
    return found


async def _one(
    completer: Completer, place: Place, proposal: Proposal, found: dict[str, Counter[str]]
) -> None:
    was, wanted = texts(proposal, place.lines)
    for name, seed in (("old line", was), ("new line", wanted)):
        for free in (False, True):
            text = await became(completer, place, seed, free=free)
            other = "the new line" if text == wanted else "the old line"
            what = other if text in (was, wanted) else "another line"
            found.setdefault(f"{name}{', free' if free else ''}", Counter())[what] += 1


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, help="processor threads of the engine")
    options = parser.parse_args()

    async def run() -> dict[str, Counter[str]]:
        async with open_session(usable_model(None), threads=options.threads) as opened:
            return await count(opened.completer)

    print("| seeded with | stayed or became the old line | the new line | another line |")
    print("|---|---|---|---|")
    for name, what in asyncio.run(run()).items():
        counts = (what[key] for key in ("the old line", "the new line", "another line"))
        print(f"| {name} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
