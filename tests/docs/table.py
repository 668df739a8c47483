"""How each command of the pages is run, or why it is not.

`make docs-test` runs RUN. A command that is in neither table fails tests/test_docs_commands.py.
"""

from __future__ import annotations

from typing import NamedTuple


class Run(NamedTuple):
    """What is to be seen when a command is run in a folder with `app.py` and an empty home."""

    shows: str
    """A pattern that its output holds."""
    exits: int = 0
    until_shown: str = ""
    """For what goes on for ever: how it is ended once it shows that; "SIGINT" or a command."""
    beside: str = ""
    """What runs in the meantime, until it says "serves"."""
    in_checkout: bool = False
    """Run at the top of the checkout instead."""


FILLED = r"    \w.*\n    return result / len[^░]*\n\d+ steps, \d+ forwards"
SERVE = "dg-lsp serve"

RUN: dict[str, Run] = {
    "make demo": Run(r"b_x = \w.*\n[^░]*\n\d+ steps, \d+ forwards", in_checkout=True),
    "dg-lsp complete app.py:12:5": Run(FILLED),
    "dg-lsp complete app.py:12:5 --watch": Run(FILLED),
    "dg-lsp complete app.py:12:5 --json": Run(r'^\{"insert": ".+", "line": 12, "column": 5, '),
    'dg-lsp edit app.py:10-14 "use a list"': Run(r"^\+\+\+ b/app\.py\n@@ "),
    "dg-lsp explain app.py:12:5": Run(r"<fim_middle>[^░]+░+"),
    "dg-lsp doctor": Run(r"✓ engine +dg-tiny"),
    "dg-lsp status": Run(r"^dg-lsp \d[\d.]+, process \d+", beside=SERVE),
    "dg-lsp status --watch": Run(
        r"dg-lsp \d[\d.]+, process \d+", exits=130, until_shown="SIGINT", beside=SERVE
    ),
    "dg-lsp serve": Run(r"serves", until_shown="dg-lsp serve --stop"),
    "dg-lsp serve --stop": Run("", beside=SERVE),
    "dg-lsp model list": Run(r"^dg-tiny +[\d.]+ MiB"),
    "dg-lsp model verify dg-tiny": Run(r"dg-tiny is whole\."),
    ".venv/bin/python scripts/plain_client.py app.py 12 5": Run(r"\A\w[^\n]*\n\Z"),
}

LISTED: dict[str, str] = {
    "make test": "it is what runs everything else; continuous integration runs it (.ci/run)",
    'pip install "dg-lsp[gpu]"': "fetches vLLM's CUDA build; make test-vllm tries the rest",
    **dict.fromkeys(
        (
            "PYTHONPATH=kernels:. python -m bench.gpu.kernels --tune 60 --out RUN/kernels.json",
            "PYTHONPATH=kernels:. python -m bench.gpu.peers --out RUN/peers.json",
            "python -m bench.gpu.moe --out RUN",
            "PYTHONPATH=engine:server:kernels:. python -m bench.gpu.few_rows "
            "--out RUN/few_rows.json",
        ),
        "measures on a GPU; tests/kernels run the kernels in the interpreter",
    ),
    "python -m bench.gpu.parity FOLDER": "writes what a GPU is held to; tests/test_gpu_bench.py",
    "python -m bench.gpu.nvfp4 FOLDER": "writes what a GPU is held to; tests/test_nvfp4_bench.py",
    "python -m bench.gpu.results RUN --date DATE": (
        "joins what a GPU was measured to do; tests/test_gpu_bench.py joins made-up figures"
    ),
    'vllm serve FOLDER --skip-tokenizer-init --scheduling-policy priority --api-key "$KEY"': (
        "needs a GPU; the same on vLLM for the CPU is run by make test-vllm"
    ),
}
