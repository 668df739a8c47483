"""The training half: rows, corruption, optimiser, and the model held to transformers."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from safetensors import safe_open
from transformers import DiffusionGemmaForBlockDiffusion

from training.corruption import (
    FIRST_ORDINARY,
    Task,
    hole_canvases,
    noise_levels,
)
from training.export import export, fused_weights, load_weights
from training.model import DiffusionModel, ModelConfig
from training.optim import Optimiser, orthogonalise, to_fp8
from training.rows import (
    CANVAS,
    CLEAN,
    FILL_IN_LAYOUTS,
    PLAIN_LAYOUTS,
    ROW,
    Layout,
    PlainRows,
    Stream,
    fill_in_batch,
    is_visible,
)
from training.tokenizer import EOS, FILE_END, FIM_MIDDLE, FIM_PREFIX, FIM_SUFFIX, PAD
from training.train import TINY, main
from training.trainer import make_view, rate_factor

ALL_LAYOUTS = [*PLAIN_LAYOUTS, *FILL_IN_LAYOUTS]
NEWLINE_ID = 20


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    torch.manual_seed(5)


@pytest.fixture(scope="module")
def stream() -> Stream:
    """Random text in which every token says where it stands, but for newlines and file ends."""
    generator = np.random.default_rng(0)
    tokens = generator.integers(100, 8192, 60_000).astype(np.uint16)
    tokens[generator.random(60_000) < 0.1] = NEWLINE_ID
    tokens[generator.random(60_000) < 0.002] = FILE_END
    tokens[generator.random(60_000) < 0.015] |= 0x8000
    newline = torch.zeros(8192, dtype=torch.bool)
    newline[NEWLINE_ID] = True
    return Stream.build(tokens, newline)


def randomised(config: ModelConfig) -> DiffusionModel:
    """A model whose norm weights also differ from their starting values."""
    model = DiffusionModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.mul_(0.5 + torch.rand_like(parameter))
            else:
                parameter.copy_(to_fp8(parameter).float())
            parameter.copy_(parameter.bfloat16().float())
    return model


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[DiffusionModel, DiffusionGemmaForBlockDiffusion]:
    """A model and what transformers reads from its export."""
    torch.manual_seed(5)
    model = randomised(TINY)
    folder = tmp_path_factory.mktemp("checkpoint")
    export(TINY, dict(model.state_dict()), folder, tokenizer=None)
    reference, report = DiffusionGemmaForBlockDiffusion.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return model, reference.eval()


def segments(layout: Layout) -> Iterator[tuple[int, int, slice]]:
    """Start and prompt end of each canvas's context, and the canvas's place in the canvas half."""
    for number in range(CANVAS // layout.canvas_width):
        place = slice(number * layout.canvas_width, (number + 1) * layout.canvas_width)
        start = number // layout.canvases * layout.segment_length if layout.fill_in else 0
        stop = start + layout.prompt_length if layout.fill_in else CLEAN - CANVAS + place.start
        yield start, stop, place


@pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=str)
def test_a_canvas_sees_its_prompt_and_itself_and_clean_text_is_causal(layout: Layout) -> None:
    index = torch.arange(ROW)
    seen = is_visible(layout.visibility(), index[:, None], index[None])
    expected = torch.zeros(ROW, ROW, dtype=torch.bool)
    for start in range(0, CLEAN, layout.segment_length):
        part = slice(start, start + layout.segment_length)
        expected[part, part] = torch.ones(layout.segment_length, layout.segment_length).tril() > 0
    for start, stop, place in segments(layout):
        rows = slice(CLEAN + place.start, CLEAN + place.stop)
        expected[rows, start:stop] = True
        expected[rows, rows] = True
    assert torch.equal(seen, expected)


@pytest.mark.parametrize("layout", [Layout(False, 1, 256), Layout(True, 2, 64)], ids=str)
@torch.no_grad()
def test_one_training_forward_is_prefill_and_canvas_of_transformers(
    layout: Layout, pair: tuple[DiffusionModel, DiffusionGemmaForBlockDiffusion]
) -> None:
    model, reference = pair
    clean = torch.randint(FIRST_ORDINARY, 8192, (1, CLEAN))
    canvas = torch.randint(FIRST_ORDINARY, 8192, (1, CANVAS))
    view = make_view(layout, TINY, torch.device("cpu"), ROW)
    blank = torch.zeros(1, CANVAS, TINY.hidden_size)
    first = model(clean, canvas, blank, view.rotation, view.mask)
    soft = model.soften(first[:, CLEAN:])
    second = model(clean, canvas, soft, view.rotation, view.mask)
    for start, stop, place in segments(layout):
        drafts = (None, model.logits(first[:, CLEAN:][:, place]))
        for states, draft in zip((first, second), drafts, strict=True):
            found = reference(
                input_ids=clean[:, start:stop],
                decoder_input_ids=canvas[:, place],
                self_conditioning_logits=draft,
            )
            ours = model.logits(states[:, CLEAN:][:, place])
            torch.testing.assert_close(ours, found.logits, atol=1e-4, rtol=1e-4)
            ours = model.logits(states[:, start:stop])
            causal = reference.lm_head(found.encoder_last_hidden_state)
            causal = TINY.logit_softcap * torch.tanh(causal / TINY.logit_softcap)
            torch.testing.assert_close(ours, causal, atol=1e-4, rtol=1e-4)


def test_the_export_holds_fp8_matrices_and_each_tied_weight_once(tmp_path: Path) -> None:
    export(TINY, dict(randomised(TINY).state_dict()), tmp_path, tokenizer=None)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    for name, file in index.items():
        with safe_open(tmp_path / file, "pt") as shard:
            values = shard.get_tensor(name)
        fp8 = values.dim() > 1
        assert values.dtype == (torch.float8_e4m3fn if fp8 else torch.bfloat16), name
    text = {name for name in index if name.startswith("model.encoder.language_model")}
    assert text == {f"model.encoder.language_model.layers.{n}.layer_scalar" for n in range(2)}
    digests = json.loads((tmp_path / "digests.json").read_text())
    assert set(index.values()) <= set(digests)


def test_training_can_go_on_from_an_export(tmp_path: Path) -> None:
    weights = dict(randomised(TINY).state_dict())
    export(TINY, weights, tmp_path, tokenizer=None)
    config, read = fused_weights(tmp_path)
    assert config == TINY
    assert read.keys() == weights.keys()
    for name, values in weights.items():
        assert torch.equal(read[name], values), name


def test_the_model_has_the_size_that_is_promised() -> None:
    with torch.device("meta"):
        model = DiffusionModel(ModelConfig())
    matrices = sum(p.numel() for p in model.parameters() if p.dim() > 1)
    assert 23_500_000 < matrices < 24_000_000
    rows = sum(
        (piece.stop - piece.start) * model.get_parameter(piece.parameter).size(1)
        for piece in model.pieces()
    )
    assert rows == matrices - model.embedding.numel()


@pytest.mark.parametrize("layout", FILL_IN_LAYOUTS, ids=str)
def test_a_segment_is_suffix_prefix_middle_and_its_targets_follow(
    layout: Layout, stream: Stream
) -> None:
    batch = fill_in_batch(stream, 16, layout)
    parts = batch.clean.view(-1, layout.segment_length)
    flags = batch.middle.view(-1, layout.segment_length)
    text = (stream.tokens.long() & 0x7FFF).tolist()
    places: dict[tuple[int, ...], int] = {
        tuple(text[at : at + 8]): at for at in range(len(text) - 8)
    }
    for part, flag in zip(parts.tolist(), flags, strict=True):
        prefix = part.index(FIM_PREFIX)
        middle = part.index(FIM_MIDDLE)
        assert middle == layout.prompt_length - 1
        end = part.index(EOS, middle)
        assert set(part[end + 1 :]) <= {PAD}
        assert flag.nonzero()[:, 0].tolist() == list(range(middle, end))
        suffix = part[1:prefix]
        assert (part[0] == FIM_SUFFIX) == bool(prefix)
        assert FILE_END not in suffix[:-1]
        start = places[tuple(part[middle - 8 : middle])] + 8
        hole = end - middle - 1
        assert 1 <= hole < layout.reserve
        assert part[middle + 1 : end] == text[start : start + hole]
        assert suffix == text[start + hole : start + hole + len(suffix)]
        assert FILE_END not in part[middle + 2 : end]


def test_a_canvas_pins_what_is_outside_its_hole_and_ends_as_its_task_says() -> None:
    width, canvases = 32, 300
    ahead = torch.arange(1000, 1000 + 2 * width)[None]
    shown = torch.tensor([False])
    made = hole_canvases(ahead, torch.tensor([7]), shown, canvases, width, EOS)
    for row in range(canvases):
        target, task = made.target[row].tolist(), int(made.task[row, 0])
        ends = target.count(EOS)
        assert target[:7] == list(range(1000, 1007))
        assert target[7 + ends :] == list(range(1007, 1007 + width - 7 - ends))
        low, high = {Task.EXACT: (0, 0), Task.OPEN: (25, 25)}.get(task, (1, 16))
        assert low <= ends <= high
        assert not made.corrupted[row, 7 + ends :].any()
    assert torch.equal(made.shown[~made.corrupted], made.target[~made.corrupted])
    assert (made.shown[made.corrupted] >= FIRST_ORDINARY).all()
    expected = {Task.EXACT, Task.OVER_WIDE, Task.OPEN, Task.EDIT}
    assert set(made.task.unique().tolist()) == expected


def test_a_second_hole_stands_behind_pinned_text_only_where_the_prompt_hides_the_suffix() -> None:
    width, canvases = 64, 400
    ahead = torch.arange(1000, 1000 + 2 * width)[None]
    made = hole_canvases(ahead, torch.tensor([7]), torch.tensor([True]), canvases, width, EOS)
    two = made.task[:, 0] == Task.TWO
    assert 0.15 < float(two.float().mean()) < 0.30
    assert torch.equal(made.target[two], ahead[:, :width].expand(int(two.sum()), -1))
    open_to_change = made.weight[two] == 1
    assert open_to_change[:, :7].all()
    assert not open_to_change[:, 7:9].any()
    second = open_to_change[:, 9:].sum(1)
    assert int(second.min()) >= 1
    assert 8 < int(second.max()) <= 16


def test_an_edit_shows_old_lines_made_of_tokens_from_around() -> None:
    width, canvases = 32, 400
    ahead = torch.arange(1000, 1000 + 2 * width)[None]
    levels = torch.zeros(canvases)
    task = torch.full((canvases,), Task.EDIT)
    hole, shown = torch.tensor([9]), torch.tensor([False])
    made = hole_canvases(ahead, hole, shown, canvases, width, EOS, task, levels)
    assert set(made.shown.unique().tolist()) <= {*ahead[0].tolist(), EOS}
    assert torch.equal(made.corrupted, made.shown != made.target)
    assert not made.corrupted[made.weight == pytest.approx(0.1)].any()
    shifts = []
    for row in made.shown.tolist():
        line = list(range(1000, 1009))
        found = {token - 1000 - place for place, token in enumerate(row[:6]) if token in line}
        shifts += [shift for shift in found if abs(shift) <= 3]
    assert set(shifts) == set(range(-3, 4))
    kept = (made.shown[:, :9] == made.target[:, :9]).float().mean()
    assert 0.4 < float(kept) < 0.8


def test_validation_canvases_hide_the_whole_hole_and_nothing_else(stream: Stream) -> None:
    batch = fill_in_batch(stream, 4, Layout(True, 1, 64), hardest=True)
    assert (batch.canvases.task == Task.EXACT).all()
    assert (batch.canvases.noise == 1).all()
    assert torch.equal(batch.canvases.corrupted, batch.canvases.weight == 1)


def test_noise_levels_spread_evenly_and_full_noise_has_its_share() -> None:
    levels = noise_levels(10_000, 0.3, torch.device("cpu"))
    assert float((levels == 1).float().mean()) == pytest.approx(0.3, abs=0.001)
    assert float((levels < 0.5).float().mean()) == pytest.approx(0.35, abs=0.001)


def test_plain_rows_are_running_text_with_their_own_canvases(stream: Stream) -> None:
    batch = PlainRows(stream).batch(8, Layout(False, 1, 64))
    assert torch.equal(batch.clean[:, -CANVAS:], batch.canvases.target)
    assert torch.equal(batch.causal_target[:, :-1], batch.clean[:, 1:])
    assert (batch.causal_weight[:, -1] == 0).all()


@pytest.mark.parametrize("shape", [(3, 16, 48), (3, 48, 16), (2, 32, 32)])
def test_orthogonalised_updates_have_singular_values_near_one(shape: tuple[int, ...]) -> None:
    values = torch.linalg.svdvals(orthogonalise(torch.randn(shape)))
    assert float(values.mean()) == pytest.approx(1.0, abs=0.2)
    assert float(values.max()) < 1.4


def test_fp8_saturates_and_an_fp8_step_leaves_only_fp8_weights() -> None:
    assert to_fp8(torch.tensor([1e6, -1e6])).float().tolist() == [448.0, -448.0]
    model = DiffusionModel(TINY)
    optimiser = Optimiser(model)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimiser.step(0, 1.0, fp8=True)
    for name, parameter in model.named_parameters():
        same = torch.equal(to_fp8(parameter.data).float(), parameter.data)
        assert same == (parameter.dim() > 1), name


def test_working_weights_may_be_cast_behind_the_masters() -> None:
    model = DiffusionModel(TINY)
    optimiser = Optimiser(model)
    model.to(torch.bfloat16)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimiser.step(0, 1.0, fp8=False)
    for name, parameter in model.named_parameters():
        assert parameter.dtype == torch.bfloat16
        assert not torch.equal(parameter, before[name]), name
    stacked = optimiser.muon.groups[0]
    for master, weight in zip(stacked.master, stacked.weights(), strict=True):
        assert torch.equal(master.bfloat16(), weight)


def test_the_rate_warms_up_holds_and_ends_at_zero() -> None:
    assert rate_factor(0, 0.0) == pytest.approx(1 / 80)
    assert rate_factor(1000, 0.5) == 1.0
    assert rate_factor(1000, 0.775) == pytest.approx(0.5)
    assert rate_factor(1000, 1.0) == 0.0


def write_pack(folder: Path) -> None:
    """A small packed data folder of repeating text, as training.pack writes it."""
    folder.mkdir()
    vocabulary = {f"t{index}": index for index in range(8192) if index != NEWLINE_ID}
    vocabulary["Ċ"] = NEWLINE_ID
    tokenizer = {"model": {"vocab": vocabulary}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    tokens = np.tile(np.arange(16, 66, dtype=np.uint16), 200)
    tokens[::37] |= 0x8000
    (folder / "train_00.xz").write_bytes(lzma.compress(tokens.tobytes()))
    np.save(folder / "hold_sample.npy", tokens)


@torch.no_grad()
def test_a_twin_reads_what_the_causal_mode_reads(stream: Stream) -> None:
    model = randomised(TINY)
    layout = Layout(True, 2, 64)
    batch = fill_in_batch(stream, 1, layout)
    whole = make_view(layout, TINY, torch.device("cpu"), ROW)
    clean = make_view(layout, TINY, torch.device("cpu"), CLEAN)
    shown, blank = batch.canvases.shown, torch.zeros(1, CANVAS, TINY.hidden_size)
    both = model(batch.clean, shown, blank, whole.rotation, whole.mask)
    alone = model(batch.clean, shown[:, :0], blank[:, :0], clean.rotation, clean.mask)
    torch.testing.assert_close(alone, both[:, :CLEAN], atol=1e-5, rtol=1e-5)


@pytest.mark.timeout(300)
def test_a_causal_twin_trains_with_the_same_command(tmp_path: Path) -> None:
    write_pack(tmp_path / "pack")
    common = ["--tiny", "--rows", "1", "--layers", "1", "--data", str(tmp_path / "pack")]
    main([*common, "--causal", "--out", str(tmp_path / "run"), "--minutes", "60", "--steps", "12"])
    records = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").open()]
    losses = [record["validation"]["sample"] for record in records if "validation" in record]
    assert losses[-1]["causal"] < losses[0]["causal"]
    assert "canvas_all_noise" not in losses[-1]


@pytest.mark.timeout(300)  # two whole runs, slow on a busy machine
def test_a_run_learns_saves_and_resumes(tmp_path: Path) -> None:
    write_pack(tmp_path / "pack")
    common = ["--tiny", "--rows", "1", "--layers", "1", "--data", str(tmp_path / "pack")]
    common += ["--out", str(tmp_path / "run"), "--minutes", "60"]
    main([*common, "--steps", "9"])
    main([*common, "--steps", "10", "--resume", str(tmp_path / "run" / "state.pt")])
    records = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").open()]
    losses = [record["validation"]["sample"] for record in records if "validation" in record]
    assert losses[-1]["causal"] < losses[0]["causal"]
    config, weights = load_weights(tmp_path / "run" / "weights-000010")
    assert config == replace(TINY, layer_pattern=("full",))
    assert weights["embedding"].dtype == torch.float8_e4m3fn
