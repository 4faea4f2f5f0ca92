"""Whatever is wrong, through the real command: one line, an exit code of docs/using.md, nothing half-written.

`main` runs in this process for the tables of cases; a few cases that need a process of their own are below them.
"""

from __future__ import annotations

import ctypes
import gzip
import hashlib
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors.numpy import load_file, save_file

from punce.errors import InputError
from tests.copies import Call, command, run_copies
from tests.in_process import exit_code

pytestmark = pytest.mark.usefixtures("quick_tables")

BAD_INPUT, SYSTEM, FAULT = 2, 3, 1
PAIR = ("--loss", "punce", "--risk", "nnpu")
_CAPABILITY_VERSION, _CAP_DAC_OVERRIDE = 0x20080522, 1  # of linux/capability.h


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one good table, one finished run, and every bad file the cases name."""
    place = tmp_path_factory.mktemp("bad input")
    good = rows()
    good.to_csv(place / "good.csv", index=False)
    good.drop(columns="y").to_csv(place / "new.csv", index=False)
    write_tables(place, good)
    write_arrays(place)
    write_pictures(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert exit_code(patch, "fit", "good.csv", "--label", "y", "--prior", 0.3, "--out", "run") == 0
        network = ("good.npz", "--label", "y", "--prior", 0.3, "--epochs", 1, *PAIR, "--out", "network")
        assert exit_code(patch, "fit", *network) == 0
    write_models(place)
    return place


def rows(n: int = 90) -> pd.DataFrame:
    random = np.random.default_rng(0)
    y = np.arange(n) % 3 == 0
    frame = pd.DataFrame(random.normal(np.where(y, 1.5, -1.5)[:, None], 1.0, (n, 3)), columns=["a", "b", "c"])
    return frame.assign(y=np.where(y & (np.arange(n) < n // 2), 1, 0))


def write_tables(place: Path, good: pd.DataFrame) -> None:
    header = "a,b,c,y\n"
    (place / "empty.csv").write_text("")
    (place / "header.csv").write_text(header)
    (place / "ragged.csv").write_text(header + "1,2,3,1\n1,2,3,0\n1,2,3,4,5,6\n")
    (place / "mixed.csv").write_bytes("a,name,y\n1,Jürgen,1\n".encode() + "2,Zoë,0\n".encode("latin-1"))
    (place / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (place / "cut.csv.gz").write_bytes(gzip.compress(good.to_csv(index=False).encode())[:-40])
    (place / "twice.csv").write_text("a,a,y\n1,2,1\n3,4,0\n")
    (place / "only_labels.csv").write_text("y\n1\n0\n")
    (place / "notes.dat").write_text("1 2 3\n")
    good.assign(y=0).to_csv(place / "no_positive.csv", index=False)
    good.assign(y=1).to_csv(place / "no_unlabelled.csv", index=False)
    good.assign(y=np.arange(len(good)) % 4).to_csv(place / "wrong_labels.csv", index=False)
    good.assign(y=np.where(good["y"] == 1, "yes", "perhaps")).to_csv(place / "odd_words.csv", index=False)
    good.to_parquet(place / "good.parquet")
    whole = (place / "good.parquet").read_bytes()
    (place / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (place / "no.parquet").write_text("a,b\n1,2\n")
    pd.DataFrame({"words": ["-", "."] * 45, "y": good["y"]}).to_csv(place / "wordless.csv", index=False)
    pd.DataFrame({"a\x1b[31m": [1, 2], "y": [0, 0]}).to_csv(place / "escape.csv", index=False)


def write_arrays(place: Path) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 4)).astype(np.float32), (np.arange(60) < 20).astype(int)
    for name, value in (("nan", np.nan), ("inf", np.inf)):
        broken = X.copy()
        broken[7, 2] = value
        np.savez(place / f"{name}.npz", X=broken, y=y)
    np.savez(place / "good.npz", X=X, y=y)
    np.savez(place / "short.npz", X=X, y=y[:-5])
    np.savez(place / "strange.npz", X=X.astype("U8"), y=y)
    whole = (place / "good.npz").read_bytes()
    (place / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.save(place / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(place / "no_labels.npy", X)


def write_pictures(place: Path) -> None:
    for folder in ("pictures", "corrupt_pictures"):
        for part, count in (("labelled", 12), ("unlabelled", 20)):
            (place / folder / part).mkdir(parents=True)
            for i in range(count):
                pixels = np.full((8, 8), 8 * i + (3 if part == "labelled" else 0), dtype=np.uint8)
                Image.fromarray(pixels).save(place / folder / part / f"{i}.png")
    (place / "corrupt_pictures" / "unlabelled" / "5.png").write_bytes(b"\x89PNG\r\n\x1a\n but no more")
    (place / "no_pictures").mkdir()


def write_models(place: Path) -> None:
    """The finished run, damaged or forged in many ways; a forger can make the hashes right."""
    damage: dict[str, Callable[[Path], object]] = {
        "cut": lambda m: (m / "model.safetensors").write_bytes((m / "model.safetensors").read_bytes()[:-9]),
        "flipped": lambda m: (m / "model.json").write_text(
            (m / "model.json").read_text().replace('"table"', '"tablf"')
        ),
        "no_manifest": lambda m: (m / "manifest.json").unlink(),
        "bad_manifest": lambda m: (m / "manifest.json").write_text("{"),
        "links": lambda m: forge(m, manifest={"../../new.csv": "0" * 64}),
        "other_kind": lambda m: forge(m, {"kind": "sound"}),
        "no_route": lambda m: forge(m, {"route": {}}),
        "wrong_prior": lambda m: forge(m, {"parameters": {"prior": 7}}),
        "code": lambda m: forge(m, {"parameters": {"__class__": "os.system"}}),
        "other_format": lambda m: forge(m, {"format": 99}),
        "no_object": lambda m: forge(m, text="[]"),
        "deep": lambda m: forge(m, text="[" * 100_000),
        "wide_tree": lambda m: forge(m, tensors="feature"),
        "circular_tree": lambda m: forge(m, tensors="left"),
    }
    for name, change in damage.items():
        shutil.copytree(place / "run", place / f"model_{name}")
        change(place / f"model_{name}" / "model")
    shutil.copytree(place / "network", place / "model_wide_network")
    content = json.loads((place / "model_wide_network" / "model" / "model.json").read_text())
    content["route"]["encoder"]["options"]["width"] = 5e4  # of which the weights alone would fill any memory
    forge(place / "model_wide_network" / "model", content)
    shutil.copytree(place / "run", place / "bad_config")
    (place / "bad_config" / "config.json").write_text("{")
    shutil.copytree(place / "run", place / "bad_report")
    (place / "bad_report" / "report.json").write_text('{"format": 1, "title": 5}')
    shutil.copytree(place / "run", place / "unfinished")
    config = json.loads((place / "run" / "config.json").read_text())
    (place / "unfinished" / "config.json").write_text(json.dumps({**config, "finished": False}))


def forge(
    model: Path,
    changes: dict[str, object] | None = None,
    *,
    text: str | None = None,
    tensors: str = "",
    manifest: dict[str, str] | None = None,
) -> None:
    content = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(text or json.dumps({**content, **(changes or {})}))
    if tensors:
        arrays = load_file(model / "model.safetensors")
        for name in (name for name in arrays if name.startswith("boosting") and name.endswith(f".{tensors}")):
            arrays[name] = np.full_like(arrays[name], 10_000 if tensors == "feature" else 0)
        save_file(arrays, model / "model.safetensors")
    digests = {n: hashlib.sha256((model / n).read_bytes()).hexdigest() for n in ("model.json", "model.safetensors")}
    (model / "manifest.json").write_text(json.dumps({"sha256": manifest or digests}))


def listing(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture
def refused(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must be refused; its one line. Whatever lay in the folder is as it was."""

    def go(*arguments: object, code: int = BAD_INPUT) -> str:
        before = listing(place)
        assert exit_code(monkeypatch, *arguments) == code, capsys.readouterr()
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert said.startswith("punce: ")
        assert "Traceback" not in said
        assert listing(place) == before
        return said

    monkeypatch.chdir(place)
    return go


UNREADABLE = {
    "empty.csv": "is empty",
    "header.csv": "has a header but no rows",
    "ragged.csv": "line 4",
    "mixed.csv": "mixes encodings: line 3 is not UTF-8",
    "binary.csv": "binary.csv",
    "cut.csv.gz": "cut.csv.gz cannot be read: it is cut off before its end",
    "twice.csv": "column names occur twice: ['a']",
    "cut.parquet": "cut.parquet cannot be read",
    "no.parquet": "no.parquet cannot be read",
    "cut.npz": "cut.npz cannot be read",
    "pickled.npy": "holds Python objects",
    "strange.npz": "real numbers",
    "inf.npz": "infini",
    "corrupt_pictures": "unlabelled/5.png",
    "no_pictures": "holds no image files",
    "notes.dat": "'.dat' are not known",
    "missing.csv": "does not exist",
}
UNLEARNABLE = {
    "no_positive.csv": "no labelled positive among 90 rows",
    "no_unlabelled.csv": "no unlabelled row among 90",
    "wrong_labels.csv": "must be 1 (labelled positive)",
    "odd_words.csv": "perhaps",
    "only_labels.csv": "no feature column is left",
    "short.npz": "60 rows but 55 labels",
    "escape.csv": "no labelled positive",
}


@pytest.mark.parametrize("command", ["fit", "prior"])
@pytest.mark.parametrize(("name", "message"), {**UNREADABLE, **UNLEARNABLE}.items())
def test_files_nothing_can_be_learned_from(command: str, name: str, message: str, refused: Callable[..., str]) -> None:
    label = [] if "pictures" in name else ["--label", "y"]
    out = "out" if command == "fit" else "out.json"
    assert message in refused(command, name, *label, "--out", out)


@pytest.mark.parametrize("command", ["fit", "prior"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--label"),
        (["--label", "yy"], "did you mean 'y'"),
        (["--label", "y", "--id", "name"], "no column 'name'"),
        (["--label", "y", "--drop", "z"], "no column 'z'"),
        (["--label", "y", "--id", "y"], "named twice"),
        (["--label", "y", "--positive", "maybe"], "no row equals the positive value 'maybe'"),
        (["--label", "y", "--scenario", "guess"], "scenario must be one of"),
        (["--label", "y", "--seed", "-1"], "0"),
        (["--label", "y", "--labels", "missing.csv"], "missing.csv does not exist"),
        (["--label", "y", "--what"], "--what"),
        (["--label"], "--label"),
    ],
)
def test_options_that_do_not_fit_the_file(
    command: str, options: list[str], message: str, refused: Callable[..., str]
) -> None:
    out = "out" if command == "fit" else "out.json"
    assert message in refused(command, "good.csv", "--out", out, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prior", "0"], "prior must lie in (0, 1)"),
        (["--prior", "1.5"], "prior must lie in (0, 1)"),
        (["--prior", "nan"], "prior must lie in (0, 1)"),
        (["--prior", "many"], "prior must be a number"),
        (["--loss", "mse"], "loss must be one of"),
        (["--risk", "mse"], "risk must be one of"),
        (["--encoder", "vgg"], "encoder must be"),
        (["--transfer", "both"], "transfer must be"),
        (["--kind", "sound"], "kind must be"),
        (["--kind", "image"], "is a table"),
        (["--kind", "text"], "which column is the text"),
        (["--threshold", "high"], "threshold must be"),
        (["--threshold", "precision=2"], "threshold must be"),
        (["--scores", "xls"], "--scores must be"),
        (["--epochs", "0"], "epochs"),
        (["--epochs", "many"], "epochs"),
        (["--device", "abacus"], "device must be auto, cpu, cuda or cuda:NUMBER, got 'abacus'"),
    ],
)
def test_options_of_fit(options: list[str], message: str, refused: Callable[..., str]) -> None:
    assert message in refused("fit", "good.csv", "--label", "y", "--out", "out", *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["good.csv", "--label", "y", "--prior", "7"], "prior must lie in (0, 1)"),
        (["good.csv", "--label", "y", "--encoder", "vgg"], "encoder"),
        (["pictures", "--encoder", "/nowhere/at/all"], "there is no encoder folder /nowhere/at/all"),
        (["no_labels.npy"], "no labels; name a file that holds them with --labels"),
        (["no_positive.csv", "--label", "y"], "no labelled positive"),
        (["good.csv", "--label", "y", "--out", "run"], "finished run"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would(options: list[str], message: str, refused: Callable[..., str]) -> None:
    assert message in refused("fit", *options, "--dry-run")


def test_other_refusals_of_fit(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punce.models.text.has_static_vectors", lambda: False)  # it may happen to be installed
    assert "1 row holds NaN or infinity, first row 7" in refused("fit", "nan.npz", "--label", "y", "--out", "out")
    assert "no words to learn from" in refused("fit", "wordless.csv", "--label", "y", "--text", "words", "--out", "o")
    assert "finished run" in refused("fit", "good.csv", "--label", "y", "--out", "run")
    assert "finished run" in refused("fit", "good.csv", "--label", "none", "--out", "run")  # before rows are read
    assert "other options (model.prior was 0.3)" in refused("fit", "good.csv", "--label", "y", "--out", "unfinished")
    assert "bad_config/config.json cannot be read" in refused("fit", "good.csv", "--label", "y", "--out", "bad_config")
    assert "not empty and holds no punce run" in refused("fit", "good.csv", "--label", "y", "--out", "pictures")
    assert "'--image-size': Input should be greater than or equal to 4" in refused(
        "fit", "pictures", "--image-size", "1", "--out", "out"
    )
    assert "good.csv is a file; name a folder" in refused("fit", "good.csv", "--label", "y", "--out", "good.csv")
    assert "good.csv" in refused("fit", "good.csv", "--label", "y", "--out", "good.csv/out")


@pytest.mark.faults
def test_what_a_fit_killed_after_its_end_left_is_removed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(listing(Path(shutil.copytree(place / "run", tmp_path / "run"))))
    (tmp_path / "run" / "work" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / ".lock").touch()
    assert exit_code(monkeypatch, "fit", place / "good.csv", "--label", "y", "--out", tmp_path / "run") == BAD_INPUT
    assert set(listing(tmp_path / "run")) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [(name, message) for name, message in UNREADABLE.items() if name.endswith((".csv", ".gz", ".parquet", ".dat"))],
)
def test_new_files_that_cannot_be_scored(name: str, message: str, refused: Callable[..., str]) -> None:
    assert message in refused("predict", "run", name, "--out", "out.csv")


def test_other_refusals_of_predict(refused: Callable[..., str]) -> None:
    pd.read_csv("new.csv").drop(columns="b").to_csv("lacks_b.csv", index=False)
    assert "missing: 'b'" in refused("predict", "run", "lacks_b.csv", "--out", "out.csv")
    assert "a CSV or Parquet file" in refused("predict", "run", "good.npz", "--out", "out.csv")
    assert "kind='table' needs a file" in refused("predict", "run", "pictures", "--out", "out.csv")
    assert ".csv or .parquet file, got out.xls" in refused("predict", "run", "new.csv", "--out", "out.xls")
    assert "--share must lie in" in refused("predict", "run", "new.csv", "--out", "out.csv", "--share", 1)
    assert "batch-rows" in refused("predict", "run", "new.csv", "--out", "out.csv", "--batch-rows", 0)
    assert "bad_config" in refused("predict", "bad_config", "new.csv", "--out", "out.csv")
    assert "no_run does not exist" in refused("predict", "no_run", "new.csv", "--out", "out.csv")
    assert "new.csv" in refused("predict", "run", "new.csv", "--out", "new.csv/out.csv")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cut", "does not match its manifest"),
        ("flipped", "does not match its manifest"),
        ("no_manifest", "but no manifest.json"),
        ("bad_manifest", "manifest.json cannot be read"),
        ("links", "does not list model.safetensors"),
        ("other_kind", "not a model that this version of punce reads"),
        ("no_route", "not a model that this version of punce reads"),
        ("wrong_prior", "prior must lie in (0, 1)"),
        ("code", "not a model that this version of punce reads"),
        ("other_format", "has model format 99"),
        ("no_object", "holds no JSON object"),
        ("deep", "cannot be read"),
        ("wide_tree", "names a column beyond the 3 there are"),
        ("circular_tree", "leads back"),
        ("wide_network", "not a model that this version of punce reads"),
    ],
)
@pytest.mark.faults
def test_damaged_and_forged_models(name: str, message: str, refused: Callable[..., str]) -> None:
    new = "no_labels.npy" if name == "wide_network" else "new.csv"
    assert message in refused("predict", f"model_{name}", new, "--out", "out.csv")


def test_data_before_the_run_is_noticed(refused: Callable[..., str]) -> None:
    assert "new.csv is a file; the folder of a run comes first" in refused("predict", "new.csv", "run")


def test_refusals_of_report_and_data(refused: Callable[..., str]) -> None:
    assert "holds no report.json" in refused("report", "pictures")
    assert "missing does not exist" in refused("report", "run", "missing")
    assert "picture does not exist; did you mean pictures or no_pictures?" in refused("report", "picture")
    assert "a run is named twice" in refused("report", "run", "pictures/../run")
    assert "report.title: expected str, got 5" in refused("report", "bad_report")
    assert "new.csv" in refused("report", "run", "--out", "new.csv/page.html")
    assert "no benchmark set is called 'cifar100'" in refused("data", "cifar100")
    assert "No such command 'fitt'. Did you mean 'fit'" in refused("fitt", "good.csv")


@pytest.mark.faults
def test_prior_writes_its_file_whole_or_not_at_all(refused: Callable[..., str]) -> None:
    assert "new.csv" in refused(
        "prior", "good.csv", "--label", "y", "--method", "elkan_noto", "--out", "new.csv/out.json"
    )
    assert "no prior estimator is called 'magic'" in refused("prior", "good.csv", "--label", "y", "--method", "magic")


def test_what_is_read_is_not_written_over(place: Path, refused: Callable[..., str]) -> None:
    parts = place / "parts"
    parts.mkdir()
    for k in range(2):
        pd.read_csv("new.csv").to_parquet(parts / f"{k}.parquet")
    Path("link.csv").symlink_to("new.csv")
    said = "would replace what the command reads"
    assert said in refused("predict", "run", "new.csv", "--out", "new.csv")
    assert said in refused("predict", "run", "good.parquet", "--out", str(place / "run" / ".." / "good.parquet"))
    assert said in refused("predict", "run", "link.csv", "--out", "new.csv")
    assert said in refused("predict", "run", "parts", "--out", "parts/1.parquet")
    assert said in refused("predict", "run", "new.csv", "--out", "run/scores.parquet")
    assert said in refused("prior", "good.csv", "--label", "y", "--out", "good.csv")
    assert said in refused("prior", "pictures", "--out", "pictures/labelled/0.png")
    labels = ["--label", "y", "--labels", "good.csv"]
    assert said in refused("prior", "no_labels.npy", *labels, "--out", "good.csv")


def test_a_result_replaces_only_a_result_of_its_kind(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "is not a result of punce predict and would be replaced"
    for mine in ("good.csv", "good.parquet"):  # good.csv is what the run learned from
        assert f"{mine} {said}" in refused("predict", "run", "new.csv", "--out", mine)
    for out in ("own.csv", "own.parquet"):
        Path(out).touch()  # as mktemp leaves it
        for _ in range(2):
            assert exit_code(monkeypatch, "predict", "run", "new.csv", "--out", out) == 0
    asked = ("prior", "good.csv", "--label", "y", "--method", "elkan_noto", "--out")
    assert "new.csv is not a result of punce prior and would be replaced" in refused(*asked, "new.csv")
    for _ in range(2):
        assert exit_code(monkeypatch, *asked, "prior.json") == 0


def test_a_page_replaces_only_a_page(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("thesis.html").write_text("<!doctype html><p>years of work</p>")
    assert "thesis.html is not a page that punce made" in refused("report", "run", "--out", "thesis.html")
    for mine in ("good.csv", "good.parquet", "run/report.json", "page.pdf"):  # which no program would open as a page
        assert "the report is a page, whose name ends in .html" in refused("report", "run", "--out", mine)
    Path("page.html").touch()  # as mktemp leaves it
    for _ in range(2):
        assert exit_code(monkeypatch, "report", "run", "--out", "page.html") == 0
    Path("run/report.html").write_text("damaged")
    assert exit_code(monkeypatch, "report", "run") == 0
    assert Path("run/report.html").read_text() == Path("page.html").read_text()


# What is not the input's fault -------------------------------------------------------------------------------------


def test_a_fault_of_ours_is_said_to_be_one(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("punce.product.fit.read_and_check", broken)
    said = refused("fit", "good.csv", "--label", "y", "--out", "out", code=FAULT)
    assert "a bug in punce, not in your input (ZeroDivisionError: two lines)" in said


def test_too_little_memory_is_said(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("punce.product.fit.read_and_check", broken)
    assert "not enough memory" in refused("fit", "good.csv", "--label", "y", "--out", "out", code=SYSTEM)


@pytest.mark.parametrize("before", [True, False], ids=["before the command", "after it"])
def test_debug_shows_the_traceback(place: Path, before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["fit", str(place / "missing.csv"), "--label", "y"]
    with pytest.raises(InputError):
        exit_code(monkeypatch, *(["--debug", *command] if before else [*command, "--debug"]))


def limited(file_limit: int | None, obeys_permissions: bool, *arguments: str) -> None:
    """``punce ARGUMENTS`` in a process that may do less."""
    if file_limit is not None:  # a write beyond it fails like one to a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
    if obeys_permissions:  # root without this capability is refused like anybody else
        libc, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
        libc.capget(header, sets)
        sets[0] &= ~(1 << _CAP_DAC_OVERRIDE)  # the first is the effective set
        libc.capset(header, sets)
    command(*arguments)


def punce(
    *arguments: object, cwd: Path, file_limit: int | None = None, obeys_permissions: bool = False
) -> subprocess.CompletedProcess[str]:
    call = Call(__name__, "limited", [file_limit, obeys_permissions, *map(str, arguments)])
    return run_copies([call], timeout=240, cwd=cwd)[0]


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("punce: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        pytest.param(
            ["fit", "good.csv", "--label", "y", "--prior", "0.3", "--out", "full"], 20_000, marks=pytest.mark.slow
        ),
        pytest.param(
            ["fit", "good.npz", "--label", "y", "--prior", "0.3", "--epochs", "1", "--out", "full"],
            20_000,
            marks=pytest.mark.slow,
        ),
        (["predict", "run", "new.csv", "--out", "full.parquet"], 1_000),
        (["report", "run", "--out", "full.html"], 10_000),
        (["prior", "good.csv", "--label", "y", "--method", "bbe", "--out", "full.json"], 50),
    ],
    ids=["fit a table", "fit embeddings", "predict", "report", "prior"],
)
@pytest.mark.faults
def test_a_full_disk(arguments: list[str], limit: int, place: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    shutil.copytree(place / "run", here / "run")
    for name in ("good.csv", "good.npz", "new.csv"):
        shutil.copy(place / name, here / name)
    before = listing(here)
    said = one_line(punce(*arguments, cwd=here, file_limit=limit), SYSTEM)
    assert "File too large" in said or "full" in said
    left = {Path(path).relative_to(here).parts[0] for path in set(listing(here)) - set(before)}
    assert left <= {"full"}
    if left:  # what fit leaves is an unfinished run with whole files, and the same command goes on with it
        assert not json.loads((here / "full" / "config.json").read_text())["finished"]
        assert not list((here / "full").rglob("*.punce-tmp"))
        again = punce(*arguments, cwd=here)
        assert again.returncode == 0, again.stderr
        assert "resuming the unfinished run" in again.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="drops a capability of Linux")
@pytest.mark.faults
def test_a_folder_that_may_not_be_written(place: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    shutil.copytree(place / "run", here / "run")
    shutil.copy(place / "good.csv", here)
    here.chmod(0o555)
    before = listing(here)
    for arguments in (
        ["fit", "good.csv", "--label", "y", "--prior", "0.3", "--out", "out"],
        ["predict", "run", "good.csv", "--out", "out.csv"],
    ):
        assert "Permission denied" in one_line(punce(*arguments, cwd=here, obeys_permissions=True), SYSTEM)
    assert listing(here) == before
    here.chmod(0o755)
