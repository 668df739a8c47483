"""Small tokenizers for tests, trained on the spot: one per prompt format."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Library

SPLIT = r"\n[ \t]*| ?[\p{L}_]+|\p{N}| ?[^\s\p{L}\p{N}_]+|[ \t]+(?!\S)|[ \t]+|\s"
"""How dg-tiny's tokenizer splits text: a line break and the indentation behind it are one."""

FIM_TOKENS = ["<eos>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
CHAT_TOKENS = ["<eos>", "<bos>", "<|turn>", "<turn|>"]
SAMPLE = [
    "def add(a, b):\n    return a + b\n",
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n",
    "for item in items:\n    if item is not None:\n        print(item)\n",
    "import os\nimport sys\n\n\nwith open(path) as file:\n    text = file.read()\n",
]


def write_tokenizer(folder: Path, special: list[str], *, split: str | None = SPLIT) -> Path:
    """A byte-level BPE tokenizer.json in `folder`; without `split` pieces may span line breaks."""
    tokenizer = Library(models.BPE())
    cuts = [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*cuts, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(token, special=True) for token in special],
        show_progress=False,
    )
    tokenizer.train_from_iterator(SAMPLE, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
