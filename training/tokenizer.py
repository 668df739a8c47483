"""Byte-level BPE tokenizer for Python source: trains, saves and loads it.

python -m training.tokenizer --out .train
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 8192
PAD, EOS, BOS, FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, FILE_END, EDIT = range(8)
SPECIAL_TOKENS = (
    "<pad>",
    "<eos>",  # the end of a hole
    "<bos>",
    "<fim_prefix>",
    "<fim_suffix>",
    "<fim_middle>",
    "<file_end>",  # between documents
    "<edit>",
    *(f"<reserved_{index}>" for index in range(8, 16)),
)
# In order: a newline with the whole indentation after it, a word with its leading
# blank, one digit, punctuation, and what blanks remain.
SPLIT = (
    r"\n[ \t]*"
    r"| ?[\p{L}_]+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}_]+"
    r"|[ \t]+(?!\S)"
    r"|[ \t]+"
    r"|\s"
)
_MINIMUM_FREQUENCY = 5
_TRAINING_CHARACTERS = 70_000_000
_CHARACTERS_PER_FILE = 20_000


def train(texts: Iterable[str]) -> Tokenizer:
    """Learns the merges; special tokens get the ids 0 to 15 in the order above."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=_MINIMUM_FREQUENCY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes tokenizer.json and the two files by which transformers loads the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>"}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        "add_bos_token": False,
        "add_eos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 1_000_000,
        "added_tokens_decoder": {
            str(index): {
                "content": token,
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": True,
            }
            for index, token in enumerate(SPECIAL_TOKENS)
        },
    }
    _write_json(folder / "tokenizer_config.json", config)
    _write_json(folder / "special_tokens_map.json", names)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def load_for_source(folder: Path) -> Tokenizer:
    """Loads the tokenizer for text that comes from source files.

    Text such as "<eos>" in a program is then encoded as ordinary characters and never
    becomes a special token; those are added by their ids.
    """
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def read_texts(path: Path) -> Iterator[str]:
    """The texts of a corpus in JSON lines."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def training_sample(texts: Iterable[str]) -> Iterator[str]:
    """The beginnings of the first files, as much text as the merges need."""
    total = 0
    for text in texts:
        sample = text[:_CHARACTERS_PER_FILE]
        yield sample
        total += len(sample)
        if total > _TRAINING_CHARACTERS:
            return


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(".train"), help="has corpus.jsonl")
    out: Path = parser.parse_args().out
    save(train(training_sample(read_texts(out / "corpus.jsonl"))), out)
    tokenizer = load_for_source(out)
    held_out = list(read_texts(out / "held_out.jsonl"))
    tokens = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(held_out))
    per_token = sum(map(len, held_out)) / tokens
    print(f"vocabulary {tokenizer.get_vocab_size()}, held-out characters per token {per_token:.3f}")


if __name__ == "__main__":
    main()
