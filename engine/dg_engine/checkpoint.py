"""Weights of a checkpoint folder: safetensors only, checked before a byte is trusted."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dg_engine.engine import EngineError


def shard_paths(folder: Path) -> list[Path]:
    """The safetensors files of a folder, by its index or the one-file name.

    Raises EngineError with one sentence for a missing shard or a folder without safetensors.
    """
    index = folder / "model.safetensors.index.json"
    if index.exists():
        try:
            weight_map = cast(dict[str, str], json.loads(index.read_text())["weight_map"])
        except (OSError, ValueError, KeyError) as error:
            raise EngineError(f"{index} cannot be used ({error}); copy the file again.") from error
        paths = sorted({folder / name for name in weight_map.values()})
    else:
        paths = [folder / "model.safetensors"]
    for path in paths:
        if path.parent != folder:
            raise EngineError(f"{index} points outside its folder ({path}); copy it again.")
        if not path.is_file():
            raise EngineError(f"{path} is missing; copy the checkpoint's safetensors files again.")
    return paths


def check_shard(path: Path) -> None:
    """Raise EngineError unless the file is as long as its own header says."""
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
        if not 2 <= length <= min(size - 8, 100_000_000):
            raise EngineError(f"{path} is no safetensors file; copy it again.")
        try:
            header = cast(dict[str, dict[str, Any]], json.loads(file.read(length)))
            end = max(
                (int(entry["data_offsets"][1]) for name, entry in header.items()
                 if name != "__metadata__"),
                default=0,
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EngineError(f"{path} has a broken header; copy it again.") from error
    expected = 8 + length + end
    if size != expected:
        raise EngineError(
            f"{path} is {size:,} bytes long but its header asks for {expected:,}; copy it again."
        )


class Weights:
    """Tensors by name out of a checkpoint's shards, converted as they are taken."""

    def __init__(self, folder: Path, *, dtype: torch.dtype, device: torch.device) -> None:
        self._folder = folder
        self._dtype = dtype
        self._device = device
        self._files: dict[str, Any] = {}
        for path in shard_paths(folder):
            check_shard(path)
            try:
                handle: Any = safe_open(str(path), framework="pt")
            except (SafetensorError, OSError) as error:
                raise EngineError(f"{path} cannot be read ({error}); copy it again.") from error
            for name in cast("list[str]", handle.keys()):
                self._files[name] = handle

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """One tensor in float32 of the given shape, scaled when a `_scale` tensor is beside it.

        Raises EngineError when it is missing or of another shape.
        """
        if name not in self._files:
            raise EngineError(
                f"{self._folder} has no tensor {name}; it is no complete DiffusionGemma checkpoint."
            )
        tensor = cast(Tensor, self._files[name].get_tensor(name))
        if tuple(tensor.shape) != shape:
            raise EngineError(
                f"{name} in {self._folder} has the shape {tuple(tensor.shape)} where config.json "
                f"asks for {shape}; weights and config.json are of two different models."
            )
        scale = f"{name}_scale"
        wide = tensor.to(torch.float32)
        if scale in self._files:
            return wide * cast(Tensor, self._files[scale].get_tensor(scale)).to(torch.float32)
        if tensor.dtype == torch.int8:
            raise EngineError(
                f"{name} in {self._folder} is int8 without the tensor {scale}; export it again."
            )
        return wide

    def place(self, tensor: Tensor) -> Tensor:
        """A finished weight in the engine's dtype on its device, contiguous."""
        return tensor.to(device=self._device, dtype=self._dtype).contiguous()
