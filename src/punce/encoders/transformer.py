"""Any Hugging Face text encoder: RoBERTa (the paper's), BERT, MPNet, MiniLM, DistilRoBERTa …

A row of text is a row of token numbers, −1 where there is none: int32 (L,), made once by :meth:`Transformer.tokens`.
So texts go through views, batches and stages like any other tensor, and the network sees no more padding than the
longest row of a few rows of similar length.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from punce.encoders.encoder import Encoder, eval_mode, projector
from punce.encoders.pretrained import TEXT, find_again, find_folder, fingerprint, load_pretrained, weights_digest
from punce.errors import InputError
from punce.training.products import fast_products
from punce.training.progress import StageProgress

Pooling = Literal["mean", "first"]
NO_TOKEN = -1

_ROWS_AT_ONCE = {"cpu": 32}  # small enough for the cache; rows of similar length waste little padding
_ROWS_AT_ONCE_GPU = 256
_TEXTS_AT_ONCE = 8192


class Transformer(Encoder):
    """A pretrained encoder with pooling, projector and online head; §5 of the paper uses RoBERTa.

    Args:
        source: a folder with config.json, model.safetensors and a tokeniser, or a name on the hub.
        pooling: "mean" over the tokens, or the "first" token ([CLS], <s>).
        max_length: tokens that the network reads at once. A longer text is trained on its beginning; :meth:`embed`
            reads it in parts of this length.
        max_parts: parts of a text that :meth:`embed` reads; the mean of their features, by tokens, is the text's.
        projection_size: size of the projections.

    Only safetensors are read, code in the folder is never run, and weights are float32. In training mode the
    network's own dropout makes the two views of a text differ.

    Shape: x int (B, L), −1 beyond the end of a row -> features (B, D) -> projections (B, projection_size).
    """

    def __init__(
        self,
        source: str | Path,
        pooling: Pooling = "mean",
        max_length: int = 128,
        projection_size: int = 128,
        max_parts: int = 8,
    ) -> None:
        super().__init__()
        if pooling not in get_args(Pooling):
            raise InputError(f"pooling must be one of {list(get_args(Pooling))}, got {pooling!r}")
        if max_length < 3:
            raise InputError(f"max_length must leave room for a word between two end tokens, got {max_length}")
        if max_parts < 1:
            raise InputError(f"max_parts must be at least 1, got {max_parts}")
        folder = find_folder(source)
        self.source = str(folder.resolve()) if Path(source).expanduser().is_dir() else str(source)
        self.sha256 = fingerprint(folder)
        self.pooling, self.projection_size, self.max_parts = pooling, projection_size, max_parts
        self.backbone, self._tokenizer = load_pretrained(folder)
        # To tell later whether training changed the network: then a saved model must keep its weights.
        self._as_loaded = self.weights_digest()
        self.max_length = min(max_length, _longest(self.backbone, self._tokenizer))
        size = int(self.backbone.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.projector = projector(size, size, projection_size)
        self.online_head = nn.Linear(size, 1)

    # Texts to tokens ---------------------------------------------------------------------------------------------

    def tokens(self, texts: Sequence[str]) -> Tensor:
        """Token numbers of texts, −1 beyond the end of each. Shape: n texts -> int32 (n, L), L at most max_length."""
        return _padded(self._token_lists(texts))

    def _token_lists(self, texts: Sequence[str]) -> list[list[int]]:
        _require_texts(texts)
        rows: list[list[int]] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            rows += self._tokenizer(
                [_encodable(text) for text in texts[start : start + _TEXTS_AT_ONCE]],
                truncation=True,
                max_length=self.max_length,
                split_special_tokens=True,  # "</s>" written in a text is text
                return_attention_mask=False,
                return_token_type_ids=False,
            )["input_ids"]
        # A tokeniser without end tokens makes nothing of an empty text, and attention over nothing is undefined.
        return [row or [self._tokenizer.pad_token_id] for row in rows]

    def parts(self, texts: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """Token rows of all parts of the texts, and which text each is of: at most `max_parts` of one."""
        if self.max_parts == 1:
            return self._token_lists(texts), list(range(len(texts)))
        _require_texts(texts)
        rows: list[list[int]] = []
        owners: list[int] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            own, of = self._split([_encodable(text) for text in texts[start : start + _TEXTS_AT_ONCE]])
            rows += own
            owners += [start + owner for owner in of]
        return rows, owners

    def _split(self, texts: list[str]) -> tuple[list[list[int]], list[int]]:
        whole = self._tokenizer(
            texts,
            add_special_tokens=False,
            split_special_tokens=True,  # "</s>" written in a text is text
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,  # it would warn of texts longer than the network reads
        )["input_ids"]
        before, after = self._end_tokens()
        room = self.max_length - len(before) - len(after)
        rows, owners = [], []
        for owner, tokens in enumerate(whole):
            for k in range(0, max(1, min(len(tokens), room * self.max_parts)), room):
                row = [*before, *tokens[k : k + room], *after]
                # Without end tokens nothing is left of an empty text, and attention over nothing is undefined.
                rows.append(row or [self._tokenizer.pad_token_id])
                owners.append(owner)
        return rows, owners

    def _end_tokens(self) -> tuple[list[int], list[int]]:
        """What the tokeniser puts before and after a text."""
        bare, whole = (
            self._tokenizer("a", add_special_tokens=added, return_attention_mask=False)["input_ids"]
            for added in (False, True)
        )
        starts = [k for k in range(len(whole) - len(bare) + 1) if whole[k : k + len(bare)] == bare]
        first = starts[0] if starts else 0
        return whole[:first], whole[first + len(bare) :]

    # Tokens to features ------------------------------------------------------------------------------------------

    def features(self, x: Tensor) -> Tensor:
        """Pooled last layer, in the order of the rows. Shape: int (B, L) -> (B, D)."""
        x = _checked(x)
        if not len(x):  # transformers fails on a batch without rows
            return self.online_head.weight.new_zeros(0, self.feature_size)
        at_once = _ROWS_AT_ONCE.get(x.device.type, _ROWS_AT_ONCE_GPU)
        if len(x) <= at_once:
            return self._pooled(x)
        # Rows of similar length go through together, so that little of a batch is padding.
        order = (x >= 0).sum(1).argsort(descending=True, stable=True)
        h = torch.cat([self._pooled(x[rows]) for rows in torch.split(order, at_once)])
        return h[order.argsort()]

    def _pooled(self, x: Tensor) -> Tensor:
        """Features of a few rows, padded to the longest of them. Shape: (b, L) -> (b, D)."""
        is_token = x >= 0
        x, is_token = (part[:, : int(is_token.sum(1).max())] for part in (x, is_token))
        ids = torch.where(is_token, x, self._tokenizer.pad_token_id).long()
        hidden = self._last_layer(ids, is_token.long())
        if self.pooling == "first":
            return hidden[:, 0]
        # Padding must not enter the mean: a text's embedding would depend on its neighbours in the batch.
        weight = is_token.to(hidden.dtype)[:, :, None]
        return (hidden * weight).sum(1) / weight.sum(1).clamp_min(1.0)

    def _last_layer(self, ids: Tensor, mask: Tensor) -> Tensor:
        """In :attr:`precision` while training; float32 comes out. Shape: (b, L), (b, L) -> (b, L, D)."""
        halved = self.training and self.precision == "bfloat16"
        with torch.autocast(ids.device.type, torch.bfloat16) if halved else nullcontext():
            hidden: Tensor = self.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
        return hidden.float() if halved else hidden

    @torch.no_grad()
    @fast_products()
    def embed(self, texts: Sequence[str], *, progress: bool = False) -> Tensor:
        """Features of many texts in their order, without gradient and dropout, on the CPU. Shape: n -> (n, D).

        Long texts are read in parts (`max_parts`), so that their end counts too. All rows are sorted by length first,
        so that short ones are not padded to the long ones.
        """
        rows, owners = self.parts(texts)
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
        device = self.online_head.weight.device
        at_once = _ROWS_AT_ONCE.get(device.type, _ROWS_AT_ONCE_GPU)
        shown = StageProgress("embed", -(-len(rows) // at_once), at_once, shown=progress)
        result = torch.empty(len(rows), self.feature_size)
        with eval_mode(self), shown:
            for start in range(0, len(order), at_once):
                chosen = order[start : start + at_once]
                result[chosen] = self._pooled(_padded([rows[i] for i in chosen]).to(device)).float().cpu()
                shown.advance("")
        return result if len(rows) == len(texts) else _means(result, rows, owners, len(texts))

    # Saved models ------------------------------------------------------------------------------------------------

    def weights_digest(self) -> str:
        """sha256 of the network's weights as they are now, without projector and online head."""
        return weights_digest(self.backbone)

    @property
    def is_trained(self) -> bool:
        """Whether the network's weights are others than those in its folder."""
        return self.weights_digest() != self._as_loaded

    @property
    def spec(self) -> dict[str, Any]:
        """What a model file keeps of this encoder: where it was, what it was, how it was used."""
        options = {"pooling": self.pooling, "max_length": self.max_length, "projection_size": self.projection_size}
        options["max_parts"] = self.max_parts
        return {"source": self.source, "sha256": self.sha256, "options": options}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Transformer:
        """The encoder that a model file names, found where it was or where PUNCE_TEXT_ENCODER points; no other one.

        The fingerprint of the folder decides. Weights that were trained since are for the model file to keep.
        """
        options = {"max_parts": 1, **spec["options"]}  # earlier versions read the beginning of a text only
        return find_again(
            spec, TEXT, lambda source: fingerprint(find_folder(source)), lambda source: cls(source, **options)
        )


def _means(features: Tensor, rows: list[list[int]], owners: list[int], n_texts: int) -> Tensor:
    """The mean over the parts of each text, by their tokens. Shape: (parts, D) -> (n, D)."""
    weight, of = torch.tensor([len(row) for row in rows], dtype=features.dtype)[:, None], torch.tensor(owners)
    total = torch.zeros(n_texts, features.shape[1]).index_add_(0, of, weight * features)
    return total / torch.zeros(n_texts, 1).index_add_(0, of, weight)


def _require_texts(texts: Sequence[str]) -> None:
    """Refuse what is no list of texts: of one str every letter would be a text."""
    if isinstance(texts, str):
        raise InputError("texts must be a list of str, got one str: give [text]")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"texts must be a list of str, got {type(text).__name__} in place {place}; write '' where there is none"
            )


def _encodable(text: str) -> str:
    """Without lone surrogates, which are no characters and which no tokeniser takes."""
    return text.encode("utf-8", "replace").decode()


def _longest(network: nn.Module, tokenizer: Any) -> int:
    """Tokens that fit into the network; two less than its positions, because RoBERTa's begin after the padding's."""
    positions = getattr(network.config, "max_position_embeddings", None)
    limits = [int(tokenizer.model_max_length), *([int(positions) - 2] if positions else [])]
    return max(3, min(limits))


def _padded(rows: list[list[int]]) -> Tensor:
    tokens = np.full((len(rows), max(map(len, rows), default=1)), NO_TOKEN, dtype=np.int32)
    for row, numbers in zip(tokens, rows, strict=True):
        row[: len(numbers)] = numbers
    return torch.from_numpy(tokens)


def _checked(x: Tensor) -> Tensor:
    if x.dim() != 2 or x.is_floating_point() or x.dtype == torch.bool:
        raise InputError(
            f"a Transformer reads token numbers, integers (b, length), got {x.dtype} {tuple(x.shape)}; "
            "make them with encoder.tokens(texts)"
        )
    return x
