"""Turns the corpus into one stream of 16-bit tokens, with random cuts.

python -m training.tokenise --out .train

A cursor stands anywhere, also in the middle of a word. So each text is cut at random
characters before it is encoded, and the first token after a cut carries CUT_FLAG:
training may begin a hole there.
"""

import argparse
import json
import random
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from training.tokenizer import FILE_END, load_for_source, read_texts

CUT_FLAG = 0x8000
TOKEN_MASK = 0x7FFF
_MEAN_CUT_SPACING = 220  # characters
_FILES_PER_BATCH = 512
_SEED = 21


def cut_points(length: int, generator: np.random.Generator) -> list[int]:
    """Ascending positions inside a text of `length` characters, exponentially spaced."""
    points: list[int] = []
    position = 0
    while True:
        position += 1 + int(generator.exponential(_MEAN_CUT_SPACING))
        if position >= length:
            return points
        points.append(position)


def pieces(text: str, generator: np.random.Generator) -> list[str]:
    """The text in one or more pieces that join to the whole."""
    borders = [0, *cut_points(len(text), generator), len(text)]
    return [text[start:end] for start, end in pairwise(borders)]


def _encode_batch(
    tokenizer: Tokenizer, texts: list[str], generator: np.random.Generator
) -> NDArray[np.uint16]:
    cut = [pieces(text, generator) for text in texts]
    encodings = iter(tokenizer.encode_batch_fast([piece for parts in cut for piece in parts]))
    stream: list[int] = []
    for parts in cut:
        for index, encoding in enumerate(islice(encodings, len(parts))):
            ids = encoding.ids
            if index and ids:
                ids[0] |= CUT_FLAG
            stream += ids
        stream.append(FILE_END)
    return np.array(stream, dtype=np.uint16)


def encode(tokenizer: Tokenizer, texts: Iterable[str], seed: int = _SEED) -> NDArray[np.uint16]:
    """Encodes texts in order, FILE_END after each.

    Args:
      tokenizer: one that reads special token names as ordinary text.
      texts: source files.
      seed: the same seed gives the same cuts.

    Returns:
      Tokens [count] in the lower 15 bits, CUT_FLAG on the first after each cut.
    """
    generator = np.random.default_rng(seed)
    source = iter(texts)
    parts: list[NDArray[np.uint16]] = []
    while batch := list(islice(source, _FILES_PER_BATCH)):
        parts.append(_encode_batch(tokenizer, batch, generator))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint16)


def decode(tokenizer: Tokenizer, stream: NDArray[np.uint16]) -> Iterator[str]:
    """The texts of a stream, the inverse of `encode`."""
    tokens = stream & TOKEN_MASK
    for part in np.split(tokens, np.flatnonzero(tokens == FILE_END) + 1):
        if part.size:
            yield tokenizer.decode(part[:-1].tolist(), skip_special_tokens=False)


def held_out_texts(path: Path) -> dict[str, list[str]]:
    """The texts of each held-out package."""
    texts: dict[str, list[str]] = {}
    with path.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            texts.setdefault(record["package"], []).append(record["text"])
    return texts


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(".train"), help="has corpus.jsonl")
    out: Path = parser.parse_args().out
    tokenizer = load_for_source(out)
    for package, texts in held_out_texts(out / "held_out.jsonl").items():
        stream = encode(tokenizer, random.Random(_SEED).sample(texts, len(texts)))
        np.save(out / f"hold_{package}.npy", stream)
        print(f"{package}: {stream.size} tokens")
    stream = encode(tokenizer, read_texts(out / "corpus.jsonl"))
    np.save(out / "train.npy", stream)
    print(f"training: {stream.size} tokens, {np.mean(stream >= CUT_FLAG):.4f} after a cut")


if __name__ == "__main__":
    main()
