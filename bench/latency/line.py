"""From a keystroke to one completed line, by stage: `python -m bench.latency.line`.

At each position the text is asked for twice: one character earlier, so that the prompt is cached
as it is while typing, and then at the position itself, which is measured. The engine runs in its
own process, as it does for an editor; the server's part runs here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
from pathlib import Path

from dg_engine.client import EngineClient
from dg_engine.models import find_model
from dg_engine.tokenizer import Tokenizer
from dg_lsp.bench.holes import HOLES, read_holes
from dg_lsp.bench.machine import machine
from dg_lsp.bench.score import quantile
from dg_lsp.completion import Completer, Completion, Source
from dg_lsp.prompts import prompt_format_for


async def measure(model: str | None, count: int, threads: int) -> tuple[str, list[Completion]]:
    """Complete at `count` held-out positions, each after one keystroke."""
    folder = find_model(model)
    tokenizer = Tokenizer(folder)
    client = EngineClient(folder, threads=threads)
    await client.start()
    info = await client.info()
    completer = Completer(client, tokenizer, prompt_format_for(tokenizer, folder))
    holes = read_holes(HOLES, None)
    random.Random(0).shuffle(holes)
    found: list[Completion] = []
    for number, hole in enumerate(holes[: count + 5]):
        source = Source(hole.path, "python", hole.prefix + hole.suffix)
        offset = len(hole.prefix)
        # The same file without its last typed character: what the keystroke before asked for.
        earlier = Source(hole.path, "python", hole.prefix[:-1] + hole.suffix)
        await completer.complete(earlier, offset - 1, multi_line=False)
        answer = await completer.complete(source, offset, multi_line=False)
        if number >= 5:  # the first ones warm the process up
            found.append(answer)
    await client.close()
    name = f"{info.model}, {info.parameters / 1e6:.1f} M parameters, {info.dtype}"
    return name, found


def report(name: str, found: list[Completion], threads: int) -> str:
    """Stages by median and 90th percentile, in milliseconds."""
    stages = sorted({stage for answer in found for stage in answer.ms} - {"total"})
    rows = [
        f"| {stage} | {statistics.median(v):.1f} | {quantile(v, 0.9):.1f} |"
        for stage in [*stages, "total"]
        for v in [[answer.ms.get(stage, 0.0) for answer in found]]
    ]
    forwards = [float(answer.forwards) for answer in found]
    return "\n".join(
        [
            f"{len(found)} cursor positions, {name}, engine on {threads} threads; {machine()}.",
            "",
            "| stage | p50 ms | p90 ms |",
            "|---|---|---|",
            *rows,
            "",
            f"Forwards: median {statistics.median(forwards):.0f}, "
            f"90th percentile {quantile(forwards, 0.9):.0f}.",
        ]
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    name, found = asyncio.run(measure(options.model, options.count, options.threads))
    text = report(name, found, options.threads)
    print(text)
    if options.out:
        options.out.write_text("# One line, prompt cached\n\n" + text + "\n", encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps([answer.ms for answer in found]), encoding="utf-8")


if __name__ == "__main__":
    main()
