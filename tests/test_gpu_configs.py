"""Configurations that only vLLM runs are read for it, and refused by the PyTorch engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dg_engine.engine import EngineError
from dg_engine.model_config import read_config
from dg_engine.models import find_model

from bench.gpu import random_model
from bench.gpu.solved import read


def test_the_published_sizes_are_read_and_counted(tmp_path: Path):
    config = read_config(random_model.write(tmp_path))
    assert config.canvas_length == 256
    assert config.eos == (1, 106, 50)
    assert [layer.sliding for layer in config.layers[:6]] == [True] * 5 + [False]
    assert config.layers[5].head_dim == 512
    assert config.quantization == "float-quantized"
    assert 25.0e9 < config.parameters < 26.5e9


def test_four_bit_weights_are_for_vllm_alone(tmp_path: Path):
    path = random_model.write(tmp_path) / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
    }
    path.write_text(json.dumps(config))
    assert read_config(tmp_path, any_weights=True).quantization == "nvfp4-pack-quantized"
    with pytest.raises(EngineError, match="or the vLLM engine on a GPU"):
        read_config(tmp_path)


def test_the_reference_asks_for_the_greedy_line_alone_where_it_says_so():
    jobs = [one.job for one in read(find_model("dg-tiny")) if one.kind == "greedy line"]
    assert jobs
    assert all(job.causal_sure is not None and job.causal_sure < -1e6 for job in jobs)
