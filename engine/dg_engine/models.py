"""Checkpoint folders: where they lie, and whether their files are whole.

Nothing here imports torch and nothing is ever unpickled: weights are read as safetensors alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import msgspec

from dg_engine.engine import EngineError

DEFAULT_MODEL = "dg-tiny"
MODEL_VARIABLE = "DG_LSP_MODEL"
MODEL_TYPE = "diffusion_gemma"
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
DIGESTS = "digests.json"
SINGLE_SHARD = "model.safetensors"
INDEX = "model.safetensors.index.json"

PICKLED = frozenset({".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"})
"""Endings of weights that could run code while they are read."""

_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000
"""The safetensors format's own limit; a longer header means that the file is something else."""
_CHUNK_BYTES = 1 << 20
_LFS_POINTER = b"version https://git-lfs"


class ModelEntry(msgspec.Struct, frozen=True):
    """A checkpoint folder that was found by its name."""

    name: str
    path: str
    size_bytes: int


def model_folders() -> list[Path]:
    """Where names are looked up, first match wins: the user's, the checkout's, a wheel's."""
    data_home = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says to ignore relative paths.
    data = Path(data_home) if os.path.isabs(data_home) else Path.home() / ".local" / "share"
    return [
        data / "dg-lsp" / "models",
        Path(__file__).resolve().parents[2] / "models",
        Path(sys.prefix) / "share" / "dg-lsp" / "models",  # where a wheel brings dg-tiny
    ]


def find_model(name: str | None = None) -> Path:
    """Folder of a checkpoint given by path or by name.

    Without `name` the environment variable DG_LSP_MODEL counts, then "dg-tiny". What holds a
    path separator or starts with "~" or "." is a path, anything else a name under
    `model_folders()`. Raises EngineError when there is no such folder.
    """
    from_variable = os.environ.get(MODEL_VARIABLE, "").strip()
    wanted = name or from_variable or DEFAULT_MODEL
    said = f" (from ${MODEL_VARIABLE})" if not name and from_variable else ""
    if _looks_like_path(wanted):
        path = Path(wanted).expanduser()
        if path.suffix in PICKLED and path.is_file():
            raise EngineError(f"{path}{said} is a pickled checkpoint; {_PICKLE_ADVICE}.")
        if path.is_dir():
            return path
        what = "is a file" if path.exists() else "does not exist"
        raise EngineError(f"{path}{said} {what}; give the folder that holds config.json.")
    for folder in model_folders():
        if (folder / wanted).is_dir():
            return folder / wanted
    places = " or ".join(str(folder) for folder in model_folders())
    raise EngineError(
        f"No model named {wanted!r}{said} in {places}; put its folder there, "
        f"or give a path with the setting model, --model or ${MODEL_VARIABLE}."
    )


def list_models() -> list[ModelEntry]:
    """Checkpoint folders that can be named, sorted; the first of two equal names wins."""
    found: dict[str, ModelEntry] = {}
    for folder in model_folders():
        for path in _children(folder):
            if path.name not in found and (path / CONFIG).is_file():
                size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
                found[path.name] = ModelEntry(path.name, str(path), size)
    return [found[name] for name in sorted(found)]


def verify_model(path: Path, *, digests: bool = True) -> list[str]:
    """What is wrong with a checkpoint folder, one sentence each; empty when nothing is.

    Sizes are always compared with the safetensors headers, which finds truncated files without
    reading them. With `digests` every file that digests.json names is hashed too.
    """
    if not path.is_dir():
        return [f"{path} is not a folder; give the folder that holds {CONFIG}."]
    tensors_of = _tensors_of(path)
    return [
        *_config_problems(path / CONFIG),
        *_presence_problems(path / TOKENIZER),
        *_pickle_problems(path),
        *([tensors_of] if isinstance(tensors_of, str) else _shard_problems(path, tensors_of)),
        *(_digest_problems(path) if digests else ()),
    ]


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, by its index or the one-file name.

    Raises EngineError with one sentence unless all are there and as long as their headers say.
    """
    tensors_of = _tensors_of(folder)
    if isinstance(tensors_of, str):
        raise EngineError(tensors_of)
    for problem in _shard_problems(folder, tensors_of):
        raise EngineError(problem)
    return [folder / shard for shard in tensors_of]


_PICKLE_ADVICE = "it could run code, so it is never read; convert it to safetensors and delete it"


def _looks_like_path(text: str) -> bool:
    separators = {os.sep, os.altsep or os.sep}
    return text.startswith(("~", ".")) or any(separator in text for separator in separators)


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _presence_problems(path: Path) -> Iterator[str]:
    if not path.is_file():
        yield f"{path} is missing; copy the checkpoint again."


def _pickle_problems(folder: Path) -> Iterator[str]:
    for path in _children(folder):
        if path.suffix in PICKLED:
            yield f"{path} is a pickled file; {_PICKLE_ADVICE}."


def _read_object(path: Path) -> dict[str, object] | str:
    """The JSON object in a file, or one sentence on why there is none."""
    try:
        value: object = json.loads(path.read_bytes())
    except FileNotFoundError:
        return f"{path} is missing; copy the checkpoint again."
    except OSError as error:
        return f"{path} cannot be read ({error.strerror}); mend its permissions."
    except ValueError:
        return f"{path} is not valid JSON; copy it again."
    if not isinstance(value, dict):
        return f"{path} holds no JSON object; copy it again."
    return cast("dict[str, object]", value)


def _config_problems(path: Path) -> Iterator[str]:
    config = _read_object(path)
    if isinstance(config, str):
        yield config
    elif config.get("model_type") != MODEL_TYPE:
        kind = config.get("model_type", "nothing")
        yield (
            f"{path} says model_type {kind!r} where dg-lsp runs {MODEL_TYPE!r}; "
            "choose a DiffusionGemma checkpoint."
        )


def _tensors_of(folder: Path) -> dict[str, frozenset[str]] | str:
    """The tensors that each weight file is to hold, by its name in the index; nothing is known of
    those of a folder without one. Or one sentence on why that cannot be told."""
    if not (folder / INDEX).exists():
        return {SINGLE_SHARD: frozenset()}
    index = _read_object(folder / INDEX)
    if isinstance(index, str):
        return index
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        return f"{folder / INDEX} has no weight_map; copy it again."
    tensors_of: dict[str, set[str]] = {}
    for tensor, shard in cast("dict[str, object]", weight_map).items():
        tensors_of.setdefault(str(shard), set()).add(tensor)
    return {shard: frozenset(tensors) for shard, tensors in sorted(tensors_of.items())}


def _shard_problems(folder: Path, tensors_of: dict[str, frozenset[str]]) -> Iterator[str]:
    for shard, tensors in tensors_of.items():
        if Path(shard).name != shard:
            yield f"{folder / INDEX} points outside its folder ({shard}); copy it again."
        else:
            yield from _weights_problems(folder / shard, tensors)


def _weights_problems(path: Path, promised: frozenset[str]) -> Iterator[str]:
    """Problems of one safetensors file that should hold the `promised` tensors."""
    if not path.is_file():
        yield f"{path} is missing; copy the checkpoint's weights there."
        return
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(len(_LFS_POINTER))
            length = int.from_bytes(start[:_LENGTH_BYTES], "little")
            file.seek(_LENGTH_BYTES)
            raw = file.read(length) if length <= _MAX_HEADER_BYTES else b""
    except OSError as error:
        yield f"{path} cannot be read ({error.strerror}); mend its permissions."
        return
    if start == _LFS_POINTER:
        yield f"{path} is a Git LFS pointer, not the weights; run `git lfs pull`."
        return
    if size < _LENGTH_BYTES or (length <= _MAX_HEADER_BYTES and len(raw) < length):
        yield f"{path} is truncated ({size} bytes, cut off in its header); copy it again."
        return
    ends = _tensor_ends(raw)
    if ends is None:
        yield f"{path} is not a safetensors file; copy it again."
        return
    expected = _LENGTH_BYTES + length + max(ends.values(), default=0)
    if size < expected:
        yield f"{path} is truncated ({size} of {expected} bytes); copy it again."
    elif size > expected:
        yield f"{path} is longer than its header says ({size} for {expected} bytes); copy it again."
    missing = sorted(promised - ends.keys())
    if missing:
        yield f"{path} lacks {missing[0]} ({len(missing)} missing in all); copy it again."


def _tensor_ends(header: bytes) -> dict[str, int] | None:
    """Where each tensor ends, in bytes behind the header; None when this is no header."""
    try:
        value: object = json.loads(header)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    ends: dict[str, int] = {}
    for name, tensor in cast("dict[str, object]", value).items():
        if name == "__metadata__":
            continue
        try:
            ends[name] = msgspec.convert(tensor, _TensorEntry).data_offsets[1]
        except msgspec.ValidationError:
            return None
    return ends


class _TensorEntry(msgspec.Struct):
    data_offsets: tuple[int, int]


def _digest_problems(folder: Path) -> Iterator[str]:
    if not (folder / DIGESTS).exists():
        return
    digests = _read_object(folder / DIGESTS)
    if isinstance(digests, str):
        yield digests
        return
    for name, digest in sorted(digests.items()):
        path = folder / name
        if Path(name).name != name:
            yield f"{folder / DIGESTS} points outside its folder ({name}); copy it again."
        elif not path.is_file():
            yield f"{path} is missing though {DIGESTS} names it; copy it again."
        elif _sha256(path) != digest:
            yield f"{path} differs from its sha256 in {DIGESTS}; copy it again."


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
