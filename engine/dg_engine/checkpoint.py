"""Weights of a checkpoint folder: safetensors only, checked before a byte is trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dg_engine.engine import EngineError
from dg_engine.models import weight_files


class Weights:
    """Tensors by name out of a checkpoint's shards, converted as they are taken."""

    def __init__(self, folder: Path, *, dtype: torch.dtype, device: torch.device) -> None:
        self._folder = folder
        self._dtype = dtype
        self._device = device
        self._files: dict[str, Any] = {}
        for path in weight_files(folder):
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
