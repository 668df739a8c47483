"""Gather what the GPU benches wrote into bench/results/: gpu.json, gpu.md and gpu_roofline.svg.

    python -m bench.gpu.results FOLDER --date DATE [--note TEXT]

FOLDER holds kernels.json and peers.json (bench.gpu.kernels, bench.gpu.peers), moe.json
(bench.gpu.moe), ours.json and upstream.json with the kernels of a block (bench/gpu_engine.py); and
if they were measured, defaults.json (ours without options), tp2.json (ours on two GPUs),
few_rows.json (bench.gpu.few_rows) and what the stages answers-*, nvfp4 and parity-* said.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
RESULTS = Path(__file__).resolve().parents[1] / "results"
WEIGHT_BYTES = 27.4e9
"""Read by a forward that touches every expert, of which the experts are EXPERT_BYTES."""
EXPERT_BYTES = 22.8e9
HEAD_GEMM = "nvjet_sm90_tst_320x128"
"""Upstream's last product, which is no part of its sampler."""
LINE_FORWARDS = 4
"""Steps; the end of the prompt comes along with the first."""
PROFILED = "kernels-block-4096.txt"
SAID = ("answers-float32", "answers-bf16", "nvfp4", "parity-anchored", "parity-symmetric")
SAID_TOO = ("parity-anchored-bf16", "parity-symmetric-bf16")
BOUND_MS = 300
"""From key to last wanted token, nine times in ten: what a GPU's capacity is counted by."""
FLEETS, TYPING = (100, 1_000, 10_000), (0.1, 0.3, 1.0)
"""Editors of a fleet, and the share of them that type at once."""
NAMES = {"ours": "ours", "fa4": "FlashAttention 4", "triton": "TRITON_ATTN"}


def load(folder: Path, name: str) -> Row:
    """A JSON file of the run."""
    return json.loads((folder / name).read_text())


def without(row: Row, name: str) -> Row:
    """A row as it is, less one of its columns."""
    return {key: value for key, value in row.items() if key != name}


def attention(folder: Path) -> list[Row]:
    """The 30 layers together, by prompt and canvas."""
    floors = {
        (row["layer"], row["prompt"], row["canvas"]): row
        for row in load(folder, "kernels.json")["attention"]
    }
    found: dict[tuple[int, int], Row] = {}
    for row in load(folder, "peers.json")["attention"]:
        key = (row["prompt"], row["canvas"])
        one = found.setdefault(key, {"prompt": key[0], "canvas": key[1], "floor_us": 0.0})
        floor = floors[row["layer"], *key]
        one["floor_us"] += row["layers"] * floor["floor_us"]
        for name in NAMES:
            one[f"{name}_us"] = one.get(f"{name}_us", 0.0) + row["layers"] * row[f"{name}_us"]
            one.setdefault(row["layer"], {})[name] = row[f"{name}_us"]
    return list(found.values())


def batches(folder: Path) -> dict[str, Row]:
    """Microseconds of the 30 layers over larger batches, by name."""
    found: dict[str, Row] = {}
    for row in load(folder, "peers.json").get("batches", ()):
        one = found.setdefault(row["batch"], {})
        for name in NAMES:
            one[f"{name}_us"] = one.get(f"{name}_us", 0.0) + row["layers"] * row[f"{name}_us"]
    return found


def once_a_forward(folder: Path, name: str, forwards: int) -> float:
    """Microseconds a forward of the kernels that are not of the layers: sampler, conditioning."""
    total = 0.0
    for line in (folder / name).read_text().splitlines():
        us, calls, kernel = line.strip().split(None, 2)
        layers_too = int(calls) > 2.5 * forwards
        if not layers_too and not kernel.startswith(("nothing", HEAD_GEMM)):
            total += float(us)
    return total / forwards


def optional(folder: Path, name: str) -> Row:
    """A JSON file, or nothing."""
    return load(folder, name) if (folder / name).exists() else {}


def few_rows(folder: Path) -> dict[str, Row]:
    """Microseconds of a feed-forward block and of its experts' products, by rows."""
    measured = optional(folder, "few_rows.json")
    found: dict[str, Row] = {
        rows: {"block_us": one["chosen"]["ours"], "block_vllm_us": one["chosen"]["vLLM's products"]}
        for rows, one in measured.get("blocks", {}).items()
    }
    for row in measured.get("products", []):
        for name in ("in", "out"):
            best = min(row[name][block]["best"][0]["us"] for block in ("16", "32"))
            found[str(row["rows"])] |= {f"{name}_us": best, f"{name}_vllm_us": row[name]["vllm_us"]}
    return found


def said(folder: Path) -> dict[str, list[str]]:
    """What stages told of answers that are the CPU's, by stage."""
    files = {name: folder / f"{name}.txt" for name in (*SAID, *SAID_TOO)}
    return {
        name: [line.strip() for line in file.read_text().splitlines() if "the CPU's" in line]
        for name, file in files.items()
        if file.exists()
    }


def gathered(folder: Path, date: str) -> Row:
    """Everything as one record."""
    kernels, ours, upstream = (
        load(folder, name) for name in ("kernels.json", "ours.json", "upstream.json")
    )
    rate = kernels["ceilings"]["bytes_per_s"]
    experts = load(folder, "moe.json")["rows"]
    touched = {str(row["tokens"]): row["experts_touched"] for row in experts}
    step_floor = 1000 * WEIGHT_BYTES / rate
    narrow = WEIGHT_BYTES - EXPERT_BYTES * (1 - touched["32"] / 128)
    by_rows = {
        row["rows"]: row
        for row in kernels["row_stats"]
        if row["top_k"] == 64 and row["dtype"] == "torch.bfloat16"
    }
    soft = {row["rows"]: row for row in kernels["soft_embedding"] if row["top_k"] == 64}
    sampler_floor = by_rows[256]["floor_us"] + soft[256]["floor_us"]
    return {
        "gpu": kernels["gpu"],
        "vllm": "0.26.0",
        "torch": kernels["torch"],
        "triton": kernels["triton"],
        "date": date,
        "ceilings": kernels["ceilings"],
        "experts_touched": touched,
        "attention": attention(folder),
        "batches": batches(folder),
        "sampler": {
            "ours_us": once_a_forward(folder, f"ours-{PROFILED}", 16),
            "upstream_us": once_a_forward(folder, f"upstream-{PROFILED}", 18),
            "floor_us": sampler_floor,
        },
        "step": {
            "ours_ms": ours["step"]["4096"]["ms"],
            "upstream_ms": upstream["step"]["4096"]["ms"],
            "floor_ms": step_floor,
        },
        "block": {
            length: {
                "ours": ours["block"][length],
                "upstream": upstream["block"][length],
                "floor_ms": 17 * step_floor,
            }
            for length in ours["block"]
        },
        "dummy_weights": {
            "ours": ours["dummy_weights"],
            "upstream": upstream["dummy_weights"],
        },
        "line": {
            length: {"ours": found, "floor_ms": LINE_FORWARDS * 1000 * narrow / rate}
            for length, found in ours["line"].items()
        },
        "line_parts": ours["line_parts"],
        "line_joined": ours.get("line_joined", {}),
        "feed_forward": ours.get("feed_forward", {}),
        "whole_layers": ours.get("whole_layers", {}),
        "few_rows": few_rows(folder),
        "defaults": optional(folder, "defaults.json"),
        "two_gpus": optional(folder, "tp2.json"),
        "answers": said(folder),
        "editors": ours.get("editors", {}),
        "moe": [without(row, "tilings") for row in experts],
        "row_stats": [without(row, "tried") for row in kernels["row_stats"]],
        "soft_embedding": kernels["soft_embedding"],
    }


def spread(one: Row) -> str:
    """A median with its extremes, where they were kept."""
    known = f" ({one['least']:.0f} to {one['most']:.0f})" if "least" in one else ""
    return f"{one['ms']:.1f}{known}"


def beside(ours: Row, upstream: Row) -> str:
    """Milliseconds and tokens a second of both, as cells of a table."""
    return " | ".join(f"{spread(one)} | {one['tokens_s']:.0f}" for one in (ours, upstream))


def page(found: Row) -> Iterator[str]:
    """The page, part by part."""
    rate = found["ceilings"]
    yield (
        f"# One H200: the 26B-A4B sizes in FP8\n\n{found['gpu']}, vLLM {found['vllm']}, torch "
        f"{found['torch']}, triton {found['triton']}, {found['date']}. Random weights of a trained "
        "model's sizes (`realistic_weights`), so that every expert of a layer is touched by a "
        f"canvas of 256 and {found['experts_touched']['32']} of 128 by one of 32. Measured in the "
        f"same runs: a copy at {rate['bytes_per_s'] / 1e12:.2f} TB/s, a bf16 product at "
        f"{rate['flops_per_s'] / 1e12:.0f} TFLOP/s; floors are bytes or operations over these. "
        f"Made by `python -m bench.gpu.results`; numbers in `gpu.json`.\n\n{found['note']}\n"
    )
    yield "\n## A whole canvas of 256 in 16 steps, and a step\n\n"
    yield "| prompt, cached | at once | ours, ms | tokens/s | upstream, ms | tokens/s | ratio |\n"
    yield "|---|---|---|---|---|---|---|\n"
    for length, both in found["block"].items():
        for count, one in both["ours"].items():
            other = both["upstream"][count]
            ratio = one["ms"] / other["ms"]
            yield f"| {length} | {count} | {beside(one, other)} | {ratio:.2f} |\n"
    step = found["step"]
    yield (
        f"\nA denoise step behind 4,096 tokens: {step['ours_ms']:.2f} ms, upstream "
        f"{step['upstream_ms']:.2f}, ratio {step['ours_ms'] / step['upstream_ms']:.2f}; the floor "
        f"by bytes is {step['floor_ms']:.1f}. With vLLM's dummy weights:\n\n"
        "| prompt, cached | ours, ms | tokens/s | upstream, ms | tokens/s |\n"
        "|---|---|---|---|---|\n"
    )
    dummy = {name: one["block"] for name, one in found["dummy_weights"].items()}
    for length, block in dummy["ours"].items():
        yield f"| {length} | {beside(block['1'], dummy['upstream'][length]['1'])} |\n"
    yield "\n## A line: 24 holes in a canvas of 32, four steps\n\n"
    yield "| prompt, cached | at once | ms to the last wanted token | floor of one |\n"
    yield "|---|---|---|---|\n"
    for length, both in found["line"].items():
        for count, one in both["ours"].items():
            yield f"| {length} | {count} | {spread(one)} | {both['floor_ms']:.0f} |\n"
    parts = "; ".join(
        f"behind {length}: " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in one.items())
        for length, one in found["line_parts"].items()
    )
    yield (
        "\nFour forwards: what of the prompt the cache lacks comes along with the first step. By "
        f"the engine's stages, {parts} (encode ends with the first draft). Upstream has no such "
        "request: its default path is the whole canvas above.\n"
    )
    for length, one in found.get("line_joined", {}).items():
        yield (
            f"\nBehind {length}, by turns in one engine: with a forward of its own for the "
            f"prompt's end {spread(one['apart'])} ms, without {spread(one['joined'])}.\n"
        )
    yield from without_options(found.get("defaults", {}))
    if found["editors"]:
        yield "\n| editors | keys | overtaken by the next key | p50 ms | p90 ms |\n"
        yield "|---|---|---|---|---|\n"
        for count, one in found["editors"].items():
            yield (
                f"| {count} | {one['keys']} | {one['overtaken']} | {one['p50']:.0f} | "
                f"{one['p90']:.0f} |\n"
            )
        yield (
            "\nSimulated editors on one GPU: a key each 0.3 s on average, a line at every key, the "
            "one before cancelled, prompts of 2,048 tokens that grow by a token a key.\n"
        )
        yield from capacity(found["editors"])
    yield "\n## Attention of the 30 layers, microseconds\n\n"
    yield "| prompt | canvas | ours | FlashAttention 4 | TRITON_ATTN | FA4 / ours | floor | "
    yield "one sliding layer: ours / FA4 | one full layer: ours / FA4 |\n"
    yield "|---|---|---|---|---|---|---|---|---|\n"
    for row in found["attention"]:
        layers = " | ".join(
            f"{row[kind]['ours']:.1f} / {row[kind]['fa4']:.1f}" for kind in ("sliding", "full")
        )
        yield (
            f"| {row['prompt']} | {row['canvas']} | {row['ours_us']:.0f} | {row['fa4_us']:.0f} | "
            f"{row['triton_us']:.0f} | {row['fa4_us'] / row['ours_us']:.2f} | "
            f"{row['floor_us']:.0f} | {layers} |\n"
        )
    if found.get("batches"):
        yield "\nLarger batches, the 30 layers:\n\n"
        yield "| batch | ours | FlashAttention 4 | TRITON_ATTN | FA4 / ours |\n"
        yield "|---|---|---|---|---|\n"
    for name, row in found.get("batches", {}).items():
        yield (
            f"| {name} | {row['ours_us']:.0f} | {row['fa4_us']:.0f} | {row['triton_us']:.0f} | "
            f"{row['fa4_us'] / row['ours_us']:.2f} |\n"
        )
    sampler = found["sampler"]
    yield (
        "\n## Sampler and self-conditioning of 256 rows\n\n"
        f"All kernels that run once a step but the last product: {sampler['ours_us']:.0f} us, "
        f"upstream {sampler['upstream_us']:.0f}, {sampler['upstream_us'] / sampler['ours_us']:.1f} "
        f"times as much; floor {sampler['floor_us']:.0f} (the logits and 64 rows of the table for "
        "each row, read once).\n"
    )
    yield "\n## Experts of one layer, microseconds\n\n"
    yield "| tokens | experts touched | floor | Triton, vLLM's tiling | Triton, ours | CUTLASS | "
    yield "Marlin (FP8 weights, bf16 activations) |\n|---|---|---|---|---|---|---|\n"
    for row in found["moe"]:
        cutlass = f"{row['cutlass_us']:.0f}" if "cutlass_us" in row else "refused"
        yield (
            f"| {row['tokens']} | {row['experts_touched']} | {row['floor_us']:.0f} | "
            f"{row['default_us']:.0f} | {row['best']['us']:.0f} | {cutlass} | "
            f"{row['marlin_us']:.0f} |\n"
        )
    yield from further(found)
    yield "\n![Attention against the chip's limits](gpu_roofline.svg)\n"


def capacity(editors: Row) -> Iterator[str]:
    """How many GPUs a fleet takes, by arithmetic from the most editors that one served."""
    within = [int(count) for count, one in editors.items() if one["p90"] <= BOUND_MS]
    beyond = [int(count) for count, one in editors.items() if one["p90"] > BOUND_MS]
    if not within:
        return
    most = max(within)
    over = f", {min(beyond)} do not" if beyond else ""
    yield (
        f"\n{most} editors that never stop typing stay within {BOUND_MS} ms nine times in ten"
        f"{over}. On paper, if GPUs share nothing and each editor stays with the one where its "
        f"prompts are cached, a fleet takes a GPU for each {most} that type at once:\n\n"
        "| editors | "
    )
    yield " | ".join(f"GPUs if {share:.0%} type at once" for share in TYPING)
    yield " |\n" + "|---" * (1 + len(TYPING)) + "|\n"
    for fleet in FLEETS:
        gpus = (str(math.ceil(fleet * share / most)) for share in TYPING)
        yield f"| {fleet:,} | " + " | ".join(gpus) + " |\n"


def without_options(found: Row) -> Iterator[str]:
    """Ours as it is when nothing is set."""
    if found:
        block, line = found["block"]["4096"]["1"], found["line"]["4096"]["1"]
        yield (
            "\nWith no option set (self-conditioning on all of the vocabulary, the last product in "
            f"bf16), behind 4096: a step {found['step']['4096']['ms']:.2f} ms, a block "
            f"{spread(block)} ms ({block['tokens_s']:.0f} tokens/s), a line {spread(line)} ms.\n"
        )


def further(found: Row) -> Iterator[str]:
    """Blocks of fewer launches, two GPUs, and whether answers are the CPU's."""
    if found.get("feed_forward"):
        yield "\n## Feed-forward blocks in fewer launches\n\n"
        yield "| rows | one layer, us | off upstream's operations by (worst layer) |\n"
        yield "|---|---|---|\n"
        for rows, one in found["feed_forward"].items():
            yield f"| {rows} | {one['us']:.0f} | {one['error']:.3f} ({one['worst']:.3f}) |\n"
        yield (
            "\nOf the length of what a layer adds; FP8 rounds a row anew wherever sums come out in "
            "another order.\n"
        )
    for rows, one in found.get("whole_layers", {}).items():
        worst = ", ".join(f"{name} {error:.2g}" for name, error in one["worst"].items())
        yield (
            f"\n{one['layers']} layers whose parts are joined, {rows} rows, beside upstream's "
            f"operations, length of the difference over the length, worst layer: {worst} "
            "(`handed`: what the next layer multiplies, in FP8).\n"
        )
    if found.get("few_rows"):
        yield "\nBy our products of experts and by vLLM's kernel, microseconds in one run:\n\n"
        yield "| rows | block: ours / vLLM's | first product | second product |\n"
        yield "|---|---|---|---|\n"
        for rows, one in found["few_rows"].items():
            pairs = [
                f"{one[f'{name}_us']:.1f} / {one[f'{name}_vllm_us']:.1f}"
                if f"{name}_us" in one
                else ""
                for name in ("block", "in", "out")
            ]
            yield f"| {rows} | " + " | ".join(pairs) + " |\n"
    if found.get("two_gpus"):
        both = found["two_gpus"]
        yield "\n## Two GPUs (`tensor_parallel_size` 2)\n\n| | at once | ms |\n|---|---|---|\n"
        for name in ("block", "line"):
            for count, one in both[name]["4096"].items():
                yield f"| {name} behind 4096 | {count} | {spread(one)} |\n"
    if found.get("answers"):
        yield "\n## Answers beside the CPU's\n\n"
        for stage, lines in found["answers"].items():
            yield "".join(f"- {stage}: {line}\n" for line in lines)


def draw(folder: Path, out: Path) -> None:
    """Attention of each kind of layer under the chip's roof."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dg-lsp"
    from matplotlib import pyplot

    kernels = load(folder, "kernels.json")
    shapes = {(row["layer"], row["prompt"], row["canvas"]): row for row in kernels["attention"]}
    rate, peak = kernels["ceilings"]["bytes_per_s"], kernels["ceilings"]["flops_per_s"]
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    edges = (10.0, peak / rate, 3000.0)
    axes.plot(edges, [min(peak, rate * x) / 1e12 for x in edges], color="#444444")
    marks = {"ours": "o", "fa4": "^", "triton": "s"}
    colours = {"sliding": "#1f77b4", "full": "#d62728"}
    for row in load(folder, "peers.json")["attention"]:
        shape = shapes[row["layer"], row["prompt"], row["canvas"]]
        for name, mark in marks.items():
            axes.scatter(
                shape["flops"] / shape["bytes"], shape["flops"] / row[f"{name}_us"] / 1e6,
                marker=mark, s=22, color=colours[row["layer"]],
                alpha=1.0 if name == "ours" else 0.45,
            )  # fmt: skip
    for name, mark in marks.items():
        axes.scatter([], [], marker=mark, color="#444444", label=NAMES[name])
    for kind, colour in colours.items():
        axes.scatter([], [], marker="o", color=colour, label=f"{kind} layers")
    axes.set(
        xscale="log", yscale="log", xlabel="operations per byte", ylabel="TFLOP/s",
        title="Attention of canvases of 32 and 256 behind 512 to 8,192 tokens",
    )  # fmt: skip
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Write the three files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--date", required=True)
    parser.add_argument("--note", default="")
    options = parser.parse_args()
    found = gathered(options.folder, options.date) | {"note": options.note}
    (RESULTS / "gpu.json").write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "gpu.md").write_text("".join(page(found)))
    draw(options.folder, RESULTS / "gpu_roofline.svg")


if __name__ == "__main__":
    main()
