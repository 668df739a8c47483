"""Compresses the token stream into folders small enough to be carried to another machine.

python -m training.pack --out .train
"""

import argparse
import lzma
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.tokenise import TOKEN_MASK
from training.tokenizer import FILE_END

Tokens = NDArray[np.uint16]

FOLDERS = ("a", "b")
_CHUNKS = 8  # in each folder
_LIMIT = 52 * 2**20  # bytes in each folder
_MARGIN = 0.995
_SAMPLE_TOKENS = 4_000_000
_HELD_OUT_TOKENS = 300_000
# Tokens are two bytes, so literals are modelled by the position's parity.
_FILTERS = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 6,
        "lc": 3,
        "lp": 1,
        "pb": 1,
        "dict_size": 64 * 2**20,
    }
]


def compress(tokens: Tokens) -> bytes:
    """One xz stream of little-endian 16-bit tokens."""
    return lzma.compress(tokens.astype("<u2").tobytes(), lzma.FORMAT_XZ, filters=_FILTERS)


def file_borders(tokens: Tokens, parts: int) -> list[int]:
    """`parts` + 1 ascending positions that split the stream evenly between whole files."""
    ends = np.flatnonzero((tokens & TOKEN_MASK) == FILE_END) + 1
    if ends.size < parts:
        raise ValueError(f"cannot split {ends.size} files into {parts} parts")
    wanted = np.arange(1, parts) * int(ends[-1]) // parts
    inner = ends[np.searchsorted(ends, wanted)]
    return [0, *inner.tolist(), int(ends[-1])]


def whole_files(tokens: Tokens, limit: int) -> Tokens:
    """The longest beginning of whole files with at most `limit` tokens."""
    ends = np.flatnonzero((tokens[:limit] & TOKEN_MASK) == FILE_END) + 1
    return tokens[: ends[-1]] if ends.size else tokens[:0]


def _write_chunk(job: tuple[Path, Tokens]) -> int:
    path, tokens = job
    path.write_bytes(compress(tokens))
    return path.stat().st_size


def _jobs(tokens: Tokens, out: Path, chunks: int) -> Iterator[tuple[Path, Tokens]]:
    borders = file_borders(tokens, chunks * len(FOLDERS))
    for index, (start, end) in enumerate(pairwise(borders)):
        folder = out / FOLDERS[index // chunks]
        yield folder / f"train_{index:02d}.xz", tokens[start:end]


def fitting(tokens: Tokens, limit: int) -> Tokens:
    """The beginning of the stream that will fit all folders, judged by a sample."""
    sample = tokens[:_SAMPLE_TOKENS]
    bytes_per_token = len(compress(sample)) / sample.size
    count = int(limit * len(FOLDERS) * _MARGIN / bytes_per_token)
    return tokens if tokens.size <= count else whole_files(tokens, count)


def pack(
    tokens: Tokens,
    out: Path,
    limit: int = _LIMIT,
    chunks: int = _CHUNKS,
    processes: int = 2,
) -> int:
    """Writes `chunks` chunks into each folder, none of them above `limit` bytes in all.

    Files beside the chunks, which must be there already, count against the limit.

    Returns:
      How many tokens were packed.
    """
    for folder in FOLDERS:
        (out / folder).mkdir(parents=True, exist_ok=True)
        for stale in (out / folder).glob("train_*.xz"):
            stale.unlink()
    beside = max(folder_bytes(out / folder) for folder in FOLDERS)
    packed = fitting(tokens, limit - beside)
    while True:
        with ProcessPoolExecutor(processes) as pool:
            for _ in pool.map(_write_chunk, _jobs(packed, out, chunks)):
                pass
        excess = max(folder_bytes(out / folder) for folder in FOLDERS) / limit
        if excess <= 1:
            return packed.size
        packed = whole_files(packed, int(packed.size * _MARGIN / excess))


def folder_bytes(folder: Path) -> int:
    """The size of a folder's files."""
    return sum(path.stat().st_size for path in folder.iterdir())


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(".train"), help="has train.npy")
    out: Path = parser.parse_args().out
    first = out / "pack" / FOLDERS[0]
    first.mkdir(parents=True, exist_ok=True)
    shutil.copy(out / "tokenizer.json", first)
    for path in sorted(out.glob("hold_*.npy")):
        np.save(first / path.name, np.load(path)[:_HELD_OUT_TOKENS])
    tokens = np.load(out / "train.npy")
    count = pack(tokens, out / "pack")
    print(f"packed {count} of {tokens.size} tokens")
    for folder in FOLDERS:
        print(f"{folder}: {folder_bytes(out / 'pack' / folder) / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
