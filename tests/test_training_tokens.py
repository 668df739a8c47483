"""From training text to tokens, packs and holes: nothing is lost on the way."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.training_texts import program
from training import holes, pack, tokenise, tokenizer
from training.unpack import unpack


@pytest.fixture(scope="module")
def small_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A tokenizer trained on a handful of programs and read back from disk."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(tokenizer.train(program(seed) for seed in range(20)), folder)
    return tokenizer.load_for_source(folder)


def test_special_tokens_have_the_ids_0_to_15(small_tokenizer: Tokenizer) -> None:
    names = ["pad", "eos", "bos", "fim_prefix", "fim_suffix", "fim_middle", "file_end", "edit"]
    names += [f"reserved_{index}" for index in range(8, 16)]
    assert [small_tokenizer.token_to_id(f"<{name}>") for name in names] == list(range(16))


def test_special_names_in_source_stay_ordinary_text(small_tokenizer: Tokenizer) -> None:
    text = "END = '<eos>'  # not <pad>, <file_end> or <fim_middle>\n"
    ids = small_tokenizer.encode(text).ids
    assert min(ids) >= len(tokenizer.SPECIAL_TOKENS)
    assert small_tokenizer.decode(ids, skip_special_tokens=False) == text


def test_transformers_loads_the_tokenizer_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer.save(tokenizer.train([program(14)]), tmp_path)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert (loaded.pad_token_id, loaded.eos_token_id, loaded.bos_token_id) == (0, 1, 2)
    text = "def f( x ):\n    return x , 12\n"
    ids = loaded(text)["input_ids"]
    assert tokenizer.BOS not in ids
    assert loaded.decode(ids) == text


def test_a_newline_and_its_indentation_are_one_token_and_digits_stand_alone(
    small_tokenizer: Tokenizer,
) -> None:
    pieces = [
        small_tokenizer.decode([token])
        for token in small_tokenizer.encode("value\n        return 12").ids
    ]
    assert pieces[-4:] == ["\n        ", "return", " 1", "2"] or pieces[-3:] == [" ", "1", "2"]


@settings(max_examples=50)
@given(texts=st.lists(st.text(min_size=1, max_size=700), min_size=1, max_size=4))
def test_a_stream_with_cuts_decodes_to_the_texts(
    small_tokenizer: Tokenizer, texts: list[str]
) -> None:
    stream = tokenise.encode(small_tokenizer, texts, seed=3)
    assert list(tokenise.decode(small_tokenizer, stream)) == texts


def test_cuts_are_flagged_where_the_pieces_begin(small_tokenizer: Tokenizer) -> None:
    text = program(15, 60)
    stream = tokenise.encode(small_tokenizer, [text], seed=4)
    parts = tokenise.pieces(text, np.random.default_rng(4))
    assert len(parts) > 20
    assert "".join(parts) == text
    flagged = np.flatnonzero(stream & tokenise.CUT_FLAG)
    lengths = [len(small_tokenizer.encode(part).ids) for part in parts]
    assert flagged.tolist() == np.cumsum(lengths[:-1]).tolist()
    assert np.array_equal(stream, tokenise.encode(small_tokenizer, [text], seed=4))


def test_packing_and_unpacking_gives_the_stream_back(
    small_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    stream = tokenise.encode(small_tokenizer, [program(seed, 3) for seed in range(40)])
    assert pack.pack(stream, tmp_path, limit=10**6, chunks=2, processes=1) == stream.size
    assert np.array_equal(unpack([tmp_path / "a", tmp_path / "b"]), stream)


def test_a_stream_too_large_is_packed_in_part_within_the_limit(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    stream = generator.integers(16, 8192, 60_000).astype(np.uint16)
    stream[99::100] = tokenizer.FILE_END
    limit = 40_000
    count = pack.pack(stream, tmp_path, limit=limit, chunks=2, processes=1)
    assert 0 < count < stream.size
    assert all(pack.folder_bytes(tmp_path / folder) <= limit for folder in pack.FOLDERS)
    unpacked = unpack([tmp_path / folder for folder in pack.FOLDERS])
    assert np.array_equal(unpacked, stream[:count])
    assert unpacked[-1] == tokenizer.FILE_END


def test_unpacking_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"run training\.pack"):
        unpack([tmp_path])


def test_only_lines_of_pure_code_can_become_holes() -> None:
    text = (
        '"""Module\ndocstring."""\n'  # 0, 1
        "import math  # why\n"  # 2
        "# alone\n"  # 3
        "\n"  # 4
        "def f(x):\n"  # 5
        '    """One line."""\n'  # 6
        "    y = '''long\n"  # 7
        "    text'''\n"  # 8
        "    return math.sin(x) + len(y)\n"  # 9
    )
    assert holes.code_lines(text) == [5, 9]


@pytest.mark.parametrize("kind", holes.KINDS)
def test_a_hole_and_its_surroundings_join_to_the_file(
    kind: str, small_tokenizer: Tokenizer
) -> None:
    text = program(16, 8)
    file = holes.HeldOutFile("own.py", text.split("\n"), holes.code_lines(text))
    drawn = list(holes.draw(small_tokenizer, "alpha", [file], kind, seed=6))
    assert len(drawn) > 5
    for hole in drawn:
        assert hole.prefix + hole.middle + hole.suffix in text
        assert "\n" not in hole.middle
        is_whole_line = not hole.prefix.rpartition("\n")[2].strip()
        assert is_whole_line == (kind == "line")


def test_a_long_prefix_is_cropped_to_whole_lines() -> None:
    prefix = program(17, 100)
    cropped = holes.crop_prefix(prefix)
    assert len(cropped) <= 4_000
    assert prefix.endswith("\n" + cropped)
