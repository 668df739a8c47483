"""Checkpoint folders: found by name or path, and every kind of damage gets its sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dg_engine.engine import EngineError
from dg_engine.models import find_model, list_models, verify_model, weight_files


def safetensors(tensors: dict[str, int]) -> bytes:
    """A safetensors file of uint8 tensors by name and size, written by hand."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in tensors.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + bytes(end)


def write_model(folder: Path) -> Path:
    """A whole checkpoint in two shards, with digests."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "diffusion_gemma"}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "a.safetensors").write_bytes(safetensors({"x": 8, "y": 4}))
    (folder / "b.safetensors").write_bytes(safetensors({"z": 16}))
    shards = {"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    digests = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("a.safetensors", "b.safetensors")
    }
    (folder / "digests.json").write_text(json.dumps(digests))
    return folder


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of this test's own; returns the models folder in it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("DG_LSP_MODEL", raising=False)
    models = tmp_path / "data" / "dg-lsp" / "models"
    models.mkdir(parents=True)
    return models


def test_a_name_is_found_in_the_data_folder(places: Path) -> None:
    model = write_model(places / "mine")
    assert find_model("mine") == model


def test_without_a_name_the_default_is_taken(places: Path) -> None:
    write_model(places / "dg-tiny")
    assert find_model() == places / "dg-tiny"


def test_the_variable_stands_in_for_a_missing_name(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(places / "one")
    write_model(places / "two")
    monkeypatch.setenv("DG_LSP_MODEL", "two")
    assert find_model() == places / "two"
    assert find_model("one") == places / "one"


@pytest.mark.parametrize("form", ["{}", "./{}"])
def test_a_path_is_taken_as_it_is(
    form: str, places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "some" / "model")
    assert find_model(form.format("some/model")).resolve() == tmp_path / "some" / "model"


def test_a_bare_name_never_means_the_working_folder(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match="'here'"):
        find_model("here")


def test_a_missing_name_says_where_it_was_looked_for(places: Path) -> None:
    with pytest.raises(EngineError) as caught:
        find_model("nowhere")
    assert str(places) in str(caught.value)
    assert "--model" in str(caught.value)


def test_a_missing_path_from_the_variable_names_the_variable(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DG_LSP_MODEL", str(tmp_path / "gone"))
    with pytest.raises(EngineError, match=r"gone \(from \$DG_LSP_MODEL\) does not exist"):
        find_model()


def test_a_pickled_file_is_refused(places: Path, tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_bytes(b"\x80\x04.")
    with pytest.raises(EngineError, match="pickled"):
        find_model(str(tmp_path / "weights.pt"))


def test_list_names_checkpoints_only(places: Path) -> None:
    write_model(places / "b")
    write_model(places / "a")
    (places / "notes").mkdir()
    mine = [entry for entry in list_models() if entry.path.startswith(str(places))]
    assert [entry.name for entry in mine] == ["a", "b"]
    whole = sum(path.stat().st_size for path in (places / "a").iterdir())
    assert mine[0].size_bytes == whole


def test_a_whole_checkpoint_has_no_problems(tmp_path: Path) -> None:
    assert verify_model(write_model(tmp_path / "m")) == []


def test_one_unsharded_file_is_enough(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m")
    for path in [*model.glob("*.safetensors"), *model.glob("*.index.json")]:
        path.unlink()
    (model / "digests.json").unlink()
    (model / "model.safetensors").write_bytes(safetensors({"x": 3}))
    assert verify_model(model) == []


def cut(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "config missing": (lambda m: (m / "config.json").unlink(), "config.json", "missing"),
    "config not json": (lambda m: (m / "config.json").write_text("{"), "config.json", "JSON"),
    "foreign model": (
        lambda m: (m / "config.json").write_text('{"model_type": "llama"}'),
        "config.json",
        "'llama'",
    ),
    "tokenizer missing": (lambda m: (m / "tokenizer.json").unlink(), "tokenizer.json", "missing"),
    "shard missing": (lambda m: (m / "b.safetensors").unlink(), "b.safetensors", "missing"),
    "last byte gone": (
        lambda m: cut(m / "b.safetensors", (m / "b.safetensors").stat().st_size - 1),
        "b.safetensors",
        "truncated",
    ),
    "header cut": (lambda m: cut(m / "b.safetensors", 20), "b.safetensors", "truncated"),
    "empty shard": (lambda m: cut(m / "b.safetensors", 0), "b.safetensors", "truncated"),
    "shard too long": (
        lambda m: (m / "b.safetensors").write_bytes(safetensors({"z": 16}) + b"x"),
        "b.safetensors",
        "longer",
    ),
    "lfs pointer": (
        lambda m: (m / "b.safetensors").write_bytes(b"version https://git-lfs.example/v1\noid"),
        "b.safetensors",
        "git lfs pull",
    ),
    "not safetensors": (
        lambda m: (m / "b.safetensors").write_bytes((4).to_bytes(8, "little") + b"abcd"),
        "b.safetensors",
        "not a safetensors file",
    ),
    "tensor of another shard": (
        lambda m: (m / "b.safetensors").write_bytes(safetensors({"w": 16})),
        "b.safetensors",
        "lacks z",
    ),
    "byte flipped": (
        lambda m: (m / "a.safetensors").write_bytes(
            (m / "a.safetensors").read_bytes()[:-1] + b"\1"
        ),
        "a.safetensors",
        "sha256",
    ),
    "pickle beside": (
        lambda m: (m / "pytorch_model.bin").write_bytes(b"\x80\x04."),
        "pytorch_model.bin",
        "pickled",
    ),
    "index empty": (
        lambda m: (m / "model.safetensors.index.json").write_text("{}"),
        "index.json",
        "weight_map",
    ),
    "index points outside": (
        lambda m: (m / "model.safetensors.index.json").write_text(
            '{"weight_map": {"x": "../a.safetensors"}}'
        ),
        "index.json",
        "outside",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_gets_one_sentence_that_names_the_file(damage: str, tmp_path: Path) -> None:
    do, file, words = DAMAGE[damage]
    model = write_model(tmp_path / "m")
    do(model)
    problems = verify_model(model)
    named = [problem for problem in problems if file in problem and words in problem]
    assert named, problems
    assert all(problem.endswith(".") and "\n" not in problem for problem in problems)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_loaded_is_what_is_verified(damage: str, tmp_path: Path) -> None:
    do, file, words = DAMAGE[damage]
    model = write_model(tmp_path / "m")
    whole = weight_files(model)
    assert sorted(path.name for path in whole) == sorted(
        p.name for p in model.glob("*.safetensors")
    )
    do(model)
    about_weights = "safetensors" in file and words != "sha256"
    if not about_weights and file != "index.json":
        assert weight_files(model) == whole
        return
    with pytest.raises(EngineError) as caught:
        weight_files(model)
    assert str(caught.value) in verify_model(model)
    assert words in str(caught.value)


def test_sizes_alone_find_truncation_without_hashing(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m")
    flipped = (model / "a.safetensors").read_bytes()[:-1] + b"\1"
    (model / "a.safetensors").write_bytes(flipped)
    assert verify_model(model, digests=False) == []
    cut(model / "a.safetensors", len(flipped) - 1)
    assert len(verify_model(model, digests=False)) == 1


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m")
    marker = tmp_path / "ran"
    # Unpickling this would create the marker.
    code = f"cbuiltins\nexec\n(V__import__('pathlib').Path({str(marker)!r}).touch()\ntR."
    (model / "evil.pt").write_bytes(code.encode())
    assert any("evil.pt" in problem for problem in verify_model(model))
    assert not marker.exists()
