"""dg-tiny in NVFP4, and the CPU's answers with the same numbers, for vLLM on a GPU to be held to.

    python -m bench.gpu.nvfp4 FOLDER [--count 20]      quantises, solves on the CPU, writes FOLDER
    python bench/gpu_engine.py --stages nvfp4 --nvfp4 FOLDER

The checkpoint has the layout of compressed-tensors (`nvfp4-pack-quantized`): two numbers of 4 bits
a byte, an FP8 scale for each 16, one global scale, which is a power of 2 here so that bfloat16
holds every product. The PyTorch engine, which does not read this format, gets those products; what
a GPU answers may then differ by the order of its sums alone. On a GPU without products of 4 bits
vLLM keeps the weights so and multiplies in bfloat16.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import torch
from dg_engine.job import MaskRule
from dg_engine.loader import load
from dg_engine.models import find_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.gpu.solved import Solved

GROUP = 16
LEVELS = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
GREATEST_SCALE = 448.0
LINEAR = re.compile(r"\.layers\.\d+\.(self_attn|mlp)\.[a-z]+_proj\.weight$")
EXPERTS = re.compile(r"^(.*\.layers\.\d+\.experts)\.(gate_up_proj|down_proj)$")
PLAIN, PACKED, ANSWERS = "plain", "packed", "answers.json"
FORMAT: dict[str, Any] = {
    "num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": GROUP,
    "symmetric": True,
}  # fmt: skip
IGNORED = ["lm_head", "re:.*router.*", "re:.*self_conditioning.*", "re:.*vision.*"]


def quantisation() -> dict[str, Any]:
    """Of config.json."""
    inputs = {**FORMAT, "dynamic": "local"}
    group = {
        "targets": ["Linear"], "weights": {**FORMAT, "dynamic": False}, "input_activations": inputs,
    }  # fmt: skip
    return {
        "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized",
        "config_groups": {"group_0": group}, "ignore": IGNORED, "kv_cache_scheme": None,
        "quantization_status": "compressed",
    }  # fmt: skip


def pack(weight: Tensor, factor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Packed numbers, scales, and what both stand for, of a matrix [rows, depth].

    `factor` is the global scale: a number is worth itself times its scale over the factor.
    """
    rows, depth = weight.shape
    groups = weight.float().view(rows, depth // GROUP, GROUP)
    wanted = groups.abs().amax(-1) / LEVELS[-1] * factor
    scales = wanted.clamp(max=GREATEST_SCALE).to(torch.float8_e4m3fn)
    step = (scales.float() / factor)[..., None]
    shrunk = torch.where(step > 0, groups.abs() / step, 0.0)
    level = (shrunk[..., None] - LEVELS).abs().argmin(-1)
    code = (level + 8 * (groups < 0)).view(rows, depth).to(torch.uint8)
    worth = torch.where(groups < 0, -1.0, 1.0) * LEVELS[level] * step
    return code[:, 0::2] | (code[:, 1::2] << 4), scales, worth.view(rows, depth).bfloat16()


def converted(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """A checkpoint's tensors packed, and plain with the same numbers."""
    matrices = {name: one for name, one in tensors.items() if _is_packed(name)}
    largest = max(float(one.float().abs().max()) for one in matrices.values())
    factor = 2.0 ** math.floor(math.log2(GREATEST_SCALE * float(LEVELS[-1]) / largest))
    packed, plain = {}, {}
    for name, one in tensors.items():
        if name not in matrices:
            packed[name] = plain[name] = one.bfloat16()
            continue
        if not (found := EXPERTS.match(name)):
            packed |= _written(name.removesuffix(".weight"), one, factor, plain, name)
            continue
        plain[name] = torch.empty(one.shape, dtype=torch.bfloat16)
        for number, expert in enumerate(one):
            names = ("gate_proj", "up_proj") if found[2] == "gate_up_proj" else ("down_proj",)
            parts = expert.chunk(len(names))
            made: dict[str, Tensor] = {}
            for part, matrix in zip(names, parts, strict=True):
                packed |= _written(f"{found[1]}.{number}.{part}", matrix, factor, made, part)
            plain[name][number] = torch.cat([made[part] for part in names])
    return packed, plain


def _is_packed(name: str) -> bool:
    return bool(LINEAR.search(name) or EXPERTS.match(name))


def _written(
    name: str, matrix: Tensor, factor: float, plain: dict[str, Tensor], kept_as: str
) -> dict[str, Tensor]:
    numbers, scales, worth = pack(matrix, factor)
    plain[kept_as] = worth
    return {
        f"{name}.weight_packed": numbers.contiguous(),
        f"{name}.weight_scale": scales.contiguous(),
        f"{name}.weight_global_scale": torch.tensor([factor]),
        f"{name}.input_global_scale": torch.tensor([1.0]),
    }


def write(model: Path, folder: Path) -> None:
    """Both checkpoints of a model, with all else that its folder holds but the digests."""
    tensors: dict[str, Tensor] = {}
    for file in sorted(model.glob("*.safetensors")):
        tensors |= load_file(file)
    for name, kept in zip((PACKED, PLAIN), converted(tensors), strict=True):
        into = folder / name
        into.mkdir(parents=True, exist_ok=True)
        for file in model.iterdir():
            if ".safetensors" not in file.name and file.name not in ("config.json", "digests.json"):
                shutil.copy(file, into)
        config = json.loads((model / "config.json").read_text())
        config.pop("quantization_config", None)
        if name == PACKED:
            config["quantization_config"] = quantisation()
        (into / "config.json").write_text(json.dumps(config, indent=1))
        save_file(kept, into / "model.safetensors", metadata={"format": "pt"})


def main() -> None:
    """Quantise, and solve."""
    # The server's packages, which a GPU's machine need not have.
    from bench.gpu.reference import solve

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=20, help="held-out lines")
    options = parser.parse_args()
    write(find_model(None), options.folder)
    loaded = load(
        options.folder / PLAIN, device=torch.device("cpu"), dtype=torch.float32,
        mask_rule=MaskRule.SYMMETRIC,
    )  # fmt: skip
    (options.folder / ANSWERS).write_bytes(msgspec.json.encode(solve(loaded, options.count)))


def read_answers(folder: Path) -> list[Solved]:
    """The CPU's."""
    return msgspec.json.decode((folder / ANSWERS).read_bytes(), type=list[Solved])


if __name__ == "__main__":
    main()
