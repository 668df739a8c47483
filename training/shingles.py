"""Fingerprints of runs of lines, to find text that occurs in two places."""

import hashlib

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

SHINGLE_LINES = 5
# Lines such as "else:", "try:" and closing brackets say nothing about origin.
_TRIVIAL_CHARACTERS = 6
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def line_hashes(text: str) -> Hashes:
    """One 64-bit hash for each non-trivial line, blind to indentation."""
    digests = b"".join(
        hashlib.blake2b(line.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for line in map(str.strip, text.split("\n"))
        if len(line) >= _TRIVIAL_CHARACTERS
    )
    return np.frombuffer(digests, dtype="<u8")


def runs(lines: Hashes, length: int = SHINGLE_LINES) -> Hashes:
    """One hash for each run of `length` lines; a shorter text is one run as a whole."""
    if lines.size == 0:
        return lines
    length = min(length, lines.size)
    count = lines.size - length + 1
    result = np.zeros(count, dtype=np.uint64)
    for offset in range(length):
        # Wrap-around in 64 bits is intended: this is a polynomial hash.
        result = result * _MULTIPLIER + lines[offset : offset + count]
    return result


def shingles(text: str) -> Hashes:
    """The runs of five non-trivial lines of a text."""
    return runs(line_hashes(text))


def union(parts: list[Hashes]) -> Hashes:
    """The distinct hashes of all parts, sorted."""
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.uint64)


def contained(hashes: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """For each hash, whether the sorted array `known` has it."""
    if known.size == 0:
        return np.zeros(hashes.size, dtype=np.bool_)
    index = np.searchsorted(known, hashes)
    index[index == known.size] = 0
    return known[index] == hashes


def share(hashes: Hashes, known: Hashes) -> float:
    """The part of `hashes` that `known` has, between 0 and 1."""
    return float(contained(hashes, known).mean()) if hashes.size else 0.0
