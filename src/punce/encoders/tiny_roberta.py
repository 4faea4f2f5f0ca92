"""A RoBERTa too small to be good for anything but trying code: random weights, two layers, written to a folder.

The classes are RoBERTa's own, so what loads, tokenises, pads and pools it is what does so for the real one, without a
download. Used by the smoke scale of the experiments and by the tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from punce.encoders.pretrained import quietly, require_transformers
from punce.training.random_stream import seeded

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 66,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}


def write_tiny_roberta(folder: Path, words: tuple[str, ...] = (), seed: int = 0, **sizes: Any) -> Path:
    """Write configuration, safetensors and a byte-level tokeniser in which each of `words` is one token.

    `sizes` replace those of the configuration. The global random stream is left alone.
    """
    require_transformers("a tiny RoBERTa")
    import transformers

    roberta: Any = transformers  # whose annotations are narrower than what it takes
    with quietly(), seeded(seed):
        tokenizer = roberta.RobertaTokenizer(*_vocabulary(words))
        config = roberta.RobertaConfig(**{"vocab_size": len(tokenizer), **_SIZES, **sizes})
        roberta.RobertaModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def _vocabulary(words: tuple[str, ...]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Every byte, and each word with and without the space before it, grown from the left one letter at a time."""
    from tokenizers.pre_tokenizers import ByteLevel

    # Special tokens first: RoBERTa's padding token has the number 1.
    vocabulary = {token: i for i, token in enumerate([*_SPECIAL, *sorted(ByteLevel.alphabet())])}
    merges: list[tuple[str, str]] = []
    for whole in (form for word in words for form in (word, f"Ġ{word}")):
        for end in range(1, len(whole)):
            if whole[: end + 1] not in vocabulary:
                vocabulary[whole[: end + 1]] = len(vocabulary)
                merges.append((whole[:end], whole[end]))
    return vocabulary, merges
