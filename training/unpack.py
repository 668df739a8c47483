"""Loads packed training tokens back into one array; needs numpy alone."""

import lzma
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def _read(path: Path) -> NDArray[np.uint16]:
    return np.frombuffer(lzma.decompress(path.read_bytes()), dtype="<u2")


def unpack(folders: Iterable[Path], threads: int = 16) -> NDArray[np.uint16]:
    """Joins the chunks of the folders, in the order of the folders and of the names.

    Raises:
      FileNotFoundError: a folder has no chunk.
    """
    paths: list[Path] = []
    for folder in folders:
        found = sorted(folder.glob("train_*.xz"))
        if not found:
            raise FileNotFoundError(f"{folder} has no train_*.xz; run training.pack first")
        paths += found
    # The decoder releases the interpreter's lock, so threads are enough.
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(_read, paths)))
