"""Where there is no GPU, Triton's interpreter runs the kernels; it is chosen before any import."""

# Triton is not part of every environment that the tests run in.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest
import torch

if not torch.cuda.is_available() and importlib.util.find_spec("triton") is not None:
    os.environ.setdefault("TRITON_INTERPRET", "1")
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor

    def patch_tensor_for_numpy(tensor: Any, scope: Any) -> None:
        """Loop bounds are arrays of one number, which numpy 2.4 no longer takes for an int."""
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor_for_numpy


@pytest.fixture(params=[torch.float32, torch.float16], ids=["fp32", "fp16"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """What the interpreter computes rightly; its bfloat16 is wrong."""
    return request.param


@pytest.fixture
def device() -> torch.device:
    """The GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
