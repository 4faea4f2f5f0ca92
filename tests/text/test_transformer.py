"""The Transformer encoder: what it reads, what it refuses, and that padding and company change no embedding."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, BertConfig, BertModel, DistilBertConfig, DistilBertModel, RobertaModel, T5Config

from punce.datasets.generated_text import WORDS, generated_reviews
from punce.encoders import Transformer
from punce.encoders.pretrained import fingerprint, has_transformers
from punce.encoders.tiny_roberta import write_tiny_roberta
from punce.errors import InputError
from punce.losses import InfoNCE
from punce.stages.pretrain import PretrainConfig, pretrain
from punce.stages.probe import extract_features
from punce.views import Text

TEXTS = ["sun", "cold rain and mud", "the sea " * 20, "", "Üñï ☃ unseen words", "warm day"]


def test_bfloat16_is_for_training_alone_and_close_to_float32(encoder: Transformer) -> None:
    tokens = encoder.tokens(TEXTS)
    for module in encoder.modules():  # two views of the same numbers: without dropout the precisions can be compared
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    scores, whole = encoder.eval().features(tokens).detach(), encoder.train().features(tokens)
    whole.square().sum().backward()
    gradient = torch.cat([p.grad.flatten() for p in encoder.backbone.parameters() if p.grad is not None])
    encoder.zero_grad()
    encoder.precision = "bfloat16"
    halved = encoder.features(tokens)
    halved.square().sum().backward()
    near = torch.cat([p.grad.flatten() for p in encoder.backbone.parameters() if p.grad is not None])
    assert halved.dtype == torch.float32
    assert not torch.equal(halved, whole)  # it did run in bfloat16
    assert (halved - whole).norm() < 0.03 * whole.norm()
    assert torch.cosine_similarity(gradient, near, dim=0) > 0.9
    assert torch.equal(encoder.eval().features(tokens), scores)


def test_the_classes_are_robertas_own(encoder: Transformer) -> None:
    assert type(encoder.backbone) is RobertaModel
    assert type(encoder._tokenizer).__name__ == "RobertaTokenizer"
    assert encoder.backbone.pooler is None
    assert encoder.max_length == 64  # 66 positions, of which RoBERTa uses two for the padding's
    assert encoder.feature_size == 16


def test_token_rows_begin_and_end_like_robertas(encoder: Transformer) -> None:
    tokens = encoder.tokens(TEXTS)
    assert tokens.dtype == torch.int32
    assert tokens.shape == (6, int((tokens >= 0).sum(1).max()))
    for row in tokens:
        ids = row[row >= 0].tolist()
        assert (ids[0], ids[-1]) == (0, 2)
        assert row[len(ids) :].tolist() == [-1] * (len(row) - len(ids))
    assert (tokens[3] >= 0).sum() == 2


def test_end_marks_written_in_a_text_are_text(encoder: Transformer) -> None:
    row = encoder.tokens(["sun </s> <pad> <s>"])[0]
    assert set(row[1:-1].tolist()).isdisjoint({0, 1, 2})


@pytest.mark.parametrize("max_parts", [1, 8])
@pytest.mark.parametrize("way", ["tokens", "embed"])
def test_what_is_no_list_of_texts_is_refused(roberta: Path, way: str, max_parts: int) -> None:
    """Of one text every letter would be embedded as a text."""
    read = getattr(Transformer(roberta, max_parts=max_parts), way)
    with pytest.raises(InputError, match=r"got one str: give \[text\]"):
        read("sun sea")
    for missing in (None, float("nan")):
        with pytest.raises(InputError, match=rf"got {type(missing).__name__} in place 1; write '' where there is none"):
            read(["sun", missing])


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_pooling_is_that_of_the_bare_network(roberta: Path, pooling: str) -> None:
    encoder = Transformer(roberta, pooling).eval()  # type: ignore[arg-type]
    bare = AutoModel.from_pretrained(roberta).eval()
    for text in TEXTS:
        ids = torch.tensor([encoder._token_lists([text])[0]])
        hidden = bare(input_ids=ids).last_hidden_state[0]
        expected = hidden.mean(0) if pooling == "mean" else hidden[0]
        torch.testing.assert_close(encoder.features(ids)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_an_embedding_does_not_depend_on_its_batch(roberta: Path, pooling: str) -> None:
    encoder = Transformer(roberta, pooling).eval()  # type: ignore[arg-type]
    texts = [*TEXTS, *generated_reviews(90).X]
    together = encoder.embed(texts)
    alone = torch.cat([encoder.embed([text]) for text in texts])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(encoder.features(encoder.tokens(texts)), together, rtol=1e-5, atol=2e-6)
    wider = torch.nn.functional.pad(encoder.tokens(texts), (0, 9), value=-1)
    torch.testing.assert_close(encoder.features(wider), together, rtol=1e-5, atol=2e-6)


def test_many_texts_come_back_in_their_order(encoder: Transformer) -> None:
    texts = generated_reviews(150, seed=3).X
    shuffled = torch.randperm(150, generator=torch.Generator().manual_seed(0))
    encoder.train()
    embedded, again = encoder.embed(texts), encoder.embed([texts[i] for i in shuffled])
    torch.testing.assert_close(embedded[shuffled], again, rtol=1e-5, atol=2e-6)
    assert encoder.training
    assert not embedded.requires_grad
    assert encoder.embed([]).shape == (0, 16)


def test_no_rows_have_no_features(encoder: Transformer) -> None:
    h = encoder.features(encoder.tokens(TEXTS)[:0])
    assert (h.shape, h.dtype) == ((0, 16), torch.float32)
    assert extract_features(encoder, Text(), encoder.tokens([])).shape == (0, 16)


def test_long_texts_are_cut(roberta: Path) -> None:
    encoder = Transformer(roberta, max_length=6)
    row = encoder.tokens(["sun sea sun sea sun sea sun sea"])[0].tolist()
    assert len(row) == 6
    assert (row[0], row[-1]) == (0, 2)


def test_dropout_makes_two_views_differ_and_the_gradient_reaches_every_weight(encoder: Transformer) -> None:
    tokens = encoder.tokens(TEXTS)
    two = Text().plan(6, 0, 0).apply(tokens, torch.arange(6))
    encoder.train()
    z = encoder(two.flatten(0, 1)).view(2, 6, -1)
    assert bool((z[0] != z[1]).any(1).all())
    (InfoNCE()(z) + encoder.monitor(encoder.features(tokens)).sum()).backward()
    without = {name for name, p in encoder.named_parameters() if p.grad is None}
    assert not without


def test_a_transformer_goes_through_pretraining_like_any_encoder(encoder: Transformer) -> None:
    part = generated_reviews(64)
    labels = part.y_true.copy()
    labels[::2] = 0
    before = encoder.embed(part.X)
    history = pretrain(
        encoder, Text(drop=0.2), encoder.tokens(part.X), labels, InfoNCE(), PretrainConfig(epochs=2, batch_size=16)
    )
    assert len(history) == 2
    assert not torch.equal(encoder.embed(part.X), before)


def test_other_architectures(tmp_path: Path, roberta: Path) -> None:
    small = {"vocab_size": 400, "pad_token_id": 1}
    bert = BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, **small, max_length=30
    )
    distil = DistilBertConfig(dim=16, n_layers=1, n_heads=2, hidden_dim=16, **small)
    for name, network in (("bert", BertModel(bert)), ("distil", DistilBertModel(distil))):
        network.save_pretrained(tmp_path / name)
        shutil.copy(roberta / "tokenizer.json", tmp_path / name)
        shutil.copy(roberta / "tokenizer_config.json", tmp_path / name)
        assert Transformer(tmp_path / name).embed(TEXTS).shape == (6, 16)


# What is refused ---------------------------------------------------------------------------------------------------


class Hostile:
    """Pickles to a call that leaves a file behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.write_text, (self.mark, "owned")


@pytest.fixture
def hostile(roberta: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A folder whose only weights are pickles that would write a file when loaded, and that file."""
    folder, mark = tmp_path / "hostile", tmp_path / "mark"
    shutil.copytree(roberta, folder)
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "model.pt", "vocab.pkl"):
        (folder / name).write_bytes(pickle.dumps(Hostile(mark)))
    return folder, mark


def test_a_pickle_is_never_loaded(hostile: tuple[Path, Path]) -> None:
    folder, mark = hostile
    pickle.loads((folder / "pytorch_model.bin").read_bytes())
    assert mark.read_text() == "owned"  # so the trap works
    mark.unlink()
    with pytest.raises(InputError, match=r"can run code.*pytorch_model\.bin.*never loaded"):
        Transformer(folder)
    assert not mark.exists()


def test_an_index_that_points_at_a_pickle_is_refused(hostile: tuple[Path, Path], roberta: Path) -> None:
    folder, mark = hostile
    index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": "pytorch_model.bin"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"must be \.safetensors files beside it"):
        Transformer(folder)
    (folder / "model.safetensors.index.json").unlink()
    shutil.copy(roberta / "model.safetensors", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"transformers_weights": "adapter_model.bin"}))
    shutil.copy(folder / "pytorch_model.bin", folder / "adapter_model.bin")
    Transformer(folder)  # reads model.safetensors, whatever the configuration says
    assert not mark.exists()


def test_code_in_the_folder_is_not_run(roberta: Path, tmp_path: Path) -> None:
    folder, mark = tmp_path / "coded", tmp_path / "mark"
    shutil.copytree(roberta, folder)
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config | own))
    (folder / "own.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).write_text('owned')\n")
    with pytest.raises(InputError, match=r"configuration in .* cannot be loaded"):
        Transformer(folder)
    assert not mark.exists()


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_attention_code_from_the_hub_is_never_asked_for(roberta: Path, tmp_path: Path, key: str) -> None:
    folder = shutil.copytree(roberta, tmp_path / "kernel")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {key: "someone/kernel"}))
    with pytest.raises(InputError, match=r"attention code from the hub \(someone/kernel\)"):
        Transformer(folder)


def test_a_configuration_that_cannot_run_is_refused_at_once(roberta: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(roberta, tmp_path / "unpadded")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"pad_token_id": None}))
    with pytest.raises(InputError, match=r"network in .* cannot be loaded"):
        Transformer(folder)
    indexed = shutil.copytree(roberta, tmp_path / "indexed")
    (indexed / "model.safetensors").unlink()
    (indexed / "model.safetensors.index.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"index\.json cannot be read: maximum recursion depth"):
        fingerprint(indexed)
    (indexed / "model.safetensors.index.json").write_text('{"weight_map": ["model.safetensors"]}')
    with pytest.raises(InputError, match="holds no weight_map"):
        Transformer(indexed)


@pytest.mark.parametrize("name", ["roberta-base", "someone/some-encoder"])
def test_a_name_that_cannot_be_reached(name: str) -> None:
    with pytest.raises(InputError, match=rf"'{name}' cannot be reached .*path of a folder.*PUNCE_TEXT_ENCODER"):
        Transformer(name)


@pytest.mark.parametrize("path", ["./nowhere", "/no/such/folder", "~/nowhere", "a/b/c"])
def test_a_folder_that_is_not_there(path: str) -> None:
    with pytest.raises(InputError, match="there is no encoder folder"):
        Transformer(path)


def test_folders_that_hold_no_encoder(roberta: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no model\.safetensors"):
        Transformer(tmp_path)
    shutil.copytree(roberta, tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match="holds an adapter"):
        Transformer(tmp_path / "adapter")
    shutil.copytree(roberta, tmp_path / "decoder")
    T5Config(d_model=8, num_layers=1, num_heads=1).save_pretrained(tmp_path / "decoder")
    with pytest.raises(InputError, match=r"encoder-decoder \(t5\)"):
        Transformer(tmp_path / "decoder")
    other = write_tiny_roberta(tmp_path / "other", WORDS, num_hidden_layers=1)
    shutil.copy(roberta / "config.json", other)
    with pytest.raises(InputError, match=r"weights do not fill the network; .* first .*layer.1"):
        Transformer(other)
    (other / "model.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(InputError, match=r"network in .* cannot be loaded"):
        Transformer(other)
    (other / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"configuration in .* cannot be loaded"):
        Transformer(other)


def test_wrong_arguments(roberta: Path, encoder: Transformer) -> None:
    with pytest.raises(InputError, match="pooling must be one of"):
        Transformer(roberta, pooling="max")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_length must leave room"):
        Transformer(roberta, max_length=2)
    with pytest.raises(InputError, match=r"make them with encoder\.tokens"):
        encoder.features(torch.rand(3, 4))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, roberta: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert not has_transformers()
    with pytest.raises(InputError, match=r"pip install 'punce\[text\]'.*encoder='tfidf'"):
        Transformer(roberta)


def test_importing_the_encoders_does_not_import_transformers() -> None:
    code = "import sys, punce.encoders, punce.stages.fewshot, punce.models; print('transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


# Which encoder it is -----------------------------------------------------------------------------------------------


def test_an_installed_package_with_weights_is_found_by_its_name_and_not_imported(
    roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(roberta, tmp_path / "tiny_words" / "model")
    (tmp_path / "tiny_words" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "tiny_words-1.0.dist-info").mkdir()
    (tmp_path / "tiny_words-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tiny-words\nVersion: 1.0\n"
    )
    (tmp_path / "tiny_words-1.0.dist-info" / "RECORD").write_text("tiny_words/model/model.safetensors,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Transformer("tiny-words").sha256 == fingerprint(roberta)


def test_the_fingerprint_is_that_of_weights_configuration_and_tokeniser(roberta: Path, tmp_path: Path) -> None:
    same = shutil.copytree(roberta, tmp_path / "same")
    (same / "README.md").write_text("not part of it")
    assert fingerprint(same) == fingerprint(roberta)
    assert fingerprint(write_tiny_roberta(tmp_path / "other", WORDS, seed=1)) != fingerprint(roberta)
    (same / "tokenizer.json").write_text((same / "tokenizer.json").read_text() + " ")
    assert fingerprint(same) != fingerprint(roberta)


def test_a_saved_encoder_is_found_again_only_if_it_is_the_same(
    roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = shutil.copytree(roberta, tmp_path / "home")
    spec = json.loads(json.dumps(Transformer(home, "first", max_length=20).spec))
    again = Transformer.from_spec(spec)
    assert (again.pooling, again.max_length) == ("first", 20)
    home.rename(tmp_path / "moved")
    with pytest.raises(InputError, match=r"trained on the text encoder.*no encoder folder.*PUNCE_TEXT_ENCODER"):
        Transformer.from_spec(spec)
    monkeypatch.setenv("PUNCE_TEXT_ENCODER", str(tmp_path / "moved"))
    assert Transformer.from_spec(spec).sha256 == spec["sha256"]
    write_tiny_roberta(home, WORDS, seed=1)
    monkeypatch.delenv("PUNCE_TEXT_ENCODER")
    with pytest.raises(InputError, match="holds other weights or another tokeniser"):
        Transformer.from_spec(spec)


def test_a_long_text_is_the_mean_of_its_parts_and_a_short_one_is_read_as_before(roberta: Path) -> None:
    encoder = Transformer(roberta, max_length=8, max_parts=3)
    long = "sun sea " * 40
    rows, owners = encoder.parts(["sun sea", long, ""])
    assert owners == [0, 1, 1, 1, 2]
    assert all(len(row) <= 8 for row in rows)
    assert rows[0] == encoder._token_lists(["sun sea"])[0]
    assert rows[1] == encoder._token_lists([long])[0]
    features = encoder.features(torch.tensor(rows[1:4])).detach()  # three full rows
    found = encoder.embed(["sun sea", long, ""])
    assert torch.allclose(found[1], features.mean(0), atol=1e-5)
    alone = Transformer(roberta, max_length=8, max_parts=1).embed(["sun sea"])[0]
    assert torch.allclose(found[0], alone, atol=1e-6)  # products round by the number of rows on some processors


def test_a_model_of_an_earlier_version_reads_the_beginning_only(roberta: Path) -> None:
    spec = Transformer(roberta, max_length=8).spec
    assert Transformer.from_spec(spec).max_parts == 8
    del spec["options"]["max_parts"]
    assert Transformer.from_spec(spec).max_parts == 1
    with pytest.raises(InputError, match="max_parts must be at least 1"):
        Transformer(roberta, max_parts=0)
