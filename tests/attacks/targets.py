"""What is fuzzed: every reader of files that people may get from others, and the loader of models.

A target is handed the bytes of one file. It may read them or refuse them with a ``PunceError``; anything else that
comes out of it is a defect.
"""

from __future__ import annotations

import io
import json
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from punce import PUClassifier
from punce.data import read, stream
from punce.data.image_files import image_files
from punce.data.tables import open_table, read_frame
from punce.datasets.catalogue import DataFile
from punce.datasets.download import unpack
from punce.datasets.grey_images import read_idx
from punce.errors import PunceError
from punce.product.predict import _reading
from punce.product.review.files import read_verdicts
from punce.product.review.run import scored_run
from punce.product.review.store import DrawnRow, ReviewFolder
from punce.report import ReportContent
from punce.report.page import render_report
from punce.storage.checkpoint import CheckpointStore
from punce.storage.row_cache import RowCache
from tests.attacks.folders import STORED, Parts, joined, rows_for, write_folder
from tests.attacks.small_models import small_models
from tests.data.test_file_forms import WRITERS, rows
from tests.product.review.runs import finished_run, write_table
from tests.report.samples import content

Seeds = Callable[[Path], list[bytes]]


@dataclass(frozen=True)
class Target:
    """`run` is handed a file called `name` in a folder of its own; `seeds` makes files that it can read."""

    name: str
    run: Callable[[Path], Any]
    seeds: Seeds
    words: tuple[bytes, ...] = ()
    """Pieces that mean something in this form, to be put into the seeds."""

    def accepts(self, path: Path) -> bool:
        """Whether the file was read; False if it was refused with words for a person."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.run(path)
            except PunceError as error:
                if not str(error).strip():
                    raise AssertionError("a refusal without words") from error
                return False
        return True


# Tables ---------------------------------------------------------------------------------------------------------------


_WHOLE = 60  # of so many inputs one is read as punce fit and punce predict read it, which takes thirty times as long


def _read_table(path: Path) -> None:
    table = open_table(path)
    for columns in (None, table.names[:1]):
        read_frame(table, columns)
    if zlib.crc32(path.read_bytes()) % _WHOLE == 0:
        for batch in stream(path, "label", batch_rows=16).batches():
            batch.load()
        read(path, "label")


def _table_seeds(name: str, folder: Path) -> list[bytes]:
    made = []
    for n in (8, 40):
        (folder / name).unlink(missing_ok=True)
        WRITERS[name](rows(n), folder / name)
        made.append((folder / name).read_bytes())
    return made


CSV_WORDS = tuple(
    word.encode()
    for word in (
        *(",", ";", "\t", "|", '"', '""', "\n", "\r\n", "\r", "\0", "\x1a", "\ufeff", "sep=;\n", "=cmd()", "@x"),
        *(
            "1e999",
            "-0",
            "NaN",
            "inf",
            "0x10",
            "1,5",
            "1.234.567,8",
            "99999999999999999999",
            "2024-13-45",
            "label",
            "1",
        ),
    )
)
JSON_WORDS = tuple(
    word.encode()
    for word in (
        *("{", "}", "[", "]", ":", ",", '"', "null", "true", "NaN", "1e999", "-1", '"\\ud800"', "9" * 30, "[" * 50),
        *('{"a":', '{"label": 1}', "1.5", '""', "\n"),
    )
)


def _tables() -> list[Target]:
    words = {"t.csv": CSV_WORDS, "t.csv.gz": (), "t.jsonl": JSON_WORDS, "t.zip": (b"../../x", b"PK\x03\x04")}
    return [Target(name, _read_table, partial(_table_seeds, name), words.get(name, ())) for name in WRITERS]


# Arrays and images --------------------------------------------------------------------------------------------------


def _read_array(path: Path) -> None:
    read(path).load()


def _array_seeds(path: Path) -> list[bytes]:
    made = []
    for array in (np.arange(24, dtype=np.float32).reshape(6, 4), np.zeros((4, 3, 5, 5), dtype=np.uint8)):
        np.save(path / "x.npy", array)
        made.append((path / "x.npy").read_bytes())
    return made


def _archive_seeds(path: Path) -> list[bytes]:
    np.savez(path / "x.npz", X=np.ones((6, 4), dtype=np.float32), y=np.arange(6) % 2)
    np.savez_compressed(path / "y.npz", X=np.ones((40, 4)))
    return [(path / name).read_bytes() for name in ("x.npz", "y.npz")]


def _read_picture(path: Path) -> None:
    files = image_files(path.parent, [path.name], None, None)
    files.look()
    files.unreadable()


def _picture_seeds(form: str, folder: Path) -> list[bytes]:
    made = []
    for mode in ("RGB", "L"):
        buffer = io.BytesIO()
        picture = Image.effect_noise((24, 24), 60).convert(mode)
        picture.save(buffer, form)
        made.append(buffer.getvalue())
    return made


_PICTURES = {"png": "PNG", "jpg": "JPEG", "gif": "GIF", "bmp": "BMP", "tif": "TIFF", "webp": "WEBP", "pgm": "PPM"}


def _arrays() -> list[Target]:
    words = (b"'shape': (", b"999999999", b"'descr': '|O'", b"True", b"(-1,)", b"'<f4'")
    arrays = [Target("x.npy", _read_array, _array_seeds, words), Target("x.npz", _read_array, _archive_seeds, words)]
    idx = Target("x-idx3-ubyte", read_idx, lambda _: [b"\0\0\x08\x03" + b"\0\0\0\x02" * 3 + bytes(8)])
    pictures = [Target(f"p.{end}", _read_picture, partial(_picture_seeds, form)) for end, form in _PICTURES.items()]
    return [*arrays, idx, *pictures]


# What punce wrote itself, after somebody else had it ------------------------------------------------------------------


def _load_model(path: Path) -> None:
    """The file holds JSON and tensors; the manifest that is written beside them fits."""
    folder = write_folder(path.parent / "hostile", Parts.of(path.read_bytes()))
    classifier = PUClassifier.load(folder)
    classifier.predict_proba(_rows_for(classifier))


def _rows_for(classifier: PUClassifier) -> Any:
    """Some rows of the form that the model reads."""
    if classifier.kind_ in ("table", "text"):
        return rows_for(classifier.kind_)
    rng = np.random.RandomState(0)
    if classifier.kind_ == "embedding":
        return rng.normal(size=(4, 12)).astype(np.float32)
    is_grey = (getattr(getattr(classifier._route, "_reader", None), "_row_shape", None) or (3,))[0] == 1
    return rng.randint(0, 256, (4, 1 if is_grey else 3, 12, 12)).astype(np.uint8)


def _model_seeds(_: Path) -> list[bytes]:
    return _stored_seeds(_) + [parts.joined() for parts in small_models().values()]


def _stored_seeds(_: Path) -> list[bytes]:
    return [joined(name) for name in STORED]


def _load_checkpoint(path: Path) -> None:
    parts, folder = Parts.of(path.read_bytes()), path.parent / "run" / "checkpoint-000001-step-1"
    write_folder(folder, parts, names=("tensors.safetensors", "state.json"), is_checkpoint=True)
    CheckpointStore(folder.parent).load_latest()


def _load_rows(path: Path) -> None:
    cache = RowCache(path.parent, writes=False)
    for key in list(cache._places)[:3]:
        cache.get(key)


def _row_seeds(folder: Path) -> list[bytes]:
    cache = RowCache(folder / "rows")
    cache.add([b"0123456789abcdef", b"fedcba9876543210"], {"a": np.ones((2, 3)), "b": np.zeros(2, dtype=np.uint8)})
    cache.flush()
    return [next((folder / "rows").glob("*.safetensors")).read_bytes()]


def _in_run(name: str, use: Callable[[Path], Any], path: Path) -> None:
    """`use` a finished run in which the file called `name` was replaced."""
    folder = path.parent / "run"
    if not folder.exists():
        finished_run(folder, write_table(path.parent / "table.csv", n=40))
    kept = (folder / name).read_bytes() if (folder / name).exists() else None
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(path.read_bytes())
    try:
        use(folder)
    finally:
        (folder / name).unlink()
        if kept is not None:
            (folder / name).write_bytes(kept)


def _run_file(name: str, folder: Path) -> list[bytes]:
    run = folder / "made"
    if not run.exists():
        finished_run(run, write_table(folder / "table.csv", n=40))
    return [(run / name).read_bytes()]


def _plan_seeds(folder: Path) -> list[bytes]:
    from punce.product.review.job import draw_rows

    run = finished_run(folder / "made", write_table(folder / "table.csv", n=40))
    scored = scored_run(run)
    draw_rows(scored, scored.data(), "share", 5, seed=0)
    return [(run / "review" / "draw.json").read_bytes()]


_DRAWN = {"bcdf-bbbc": DrawnRow(1, "row 1", "bcdf-bbbc", "00"), "bcdf-bbbd": DrawnRow(2, "row 2", "bcdf-bbbd", "01")}
_VERDICTS = b"key,id,verdict\nbcdf-bbbc,row 1,yes\nbcdf-bbbd,row 2,no\n"


def _report(path: Path) -> None:
    render_report(ReportContent.read(path))


def _unpack(path: Path) -> None:
    target = path.parent / "unpacked"
    target.mkdir(exist_ok=True)
    unpack(path, "top", [DataFile("t.csv", None)], target, limit=1 << 20)  # type: ignore[arg-type]


def _own() -> list[Target]:
    report = partial(json.dumps, allow_nan=False)
    return [
        Target("model", _load_model, _model_seeds, JSON_WORDS),
        Target("checkpoint", _load_checkpoint, _stored_seeds, JSON_WORDS),
        Target("rows.safetensors", _load_rows, _row_seeds, JSON_WORDS),
        Target(
            "config.json", partial(_in_run, "config.json", _use_config), partial(_run_file, "config.json"), JSON_WORDS
        ),
        Target(
            "metrics.json", partial(_in_run, "metrics.json", scored_run), partial(_run_file, "metrics.json"), JSON_WORDS
        ),
        Target("scores.csv", partial(_in_run, "scores.csv", scored_run), partial(_run_file, "scores.csv"), CSV_WORDS),
        Target("scores.parquet", partial(_in_run, "scores.parquet", scored_run), _scores_seeds),
        Target("draw.json", partial(_in_run, "review/draw.json", _use_plan), _plan_seeds, JSON_WORDS),
        Target("verdicts.jsonl", partial(_in_run, "review/verdicts.jsonl", _use_verdicts), _log_seeds, JSON_WORDS),
        Target("verdicts.csv", lambda path: read_verdicts(path, _DRAWN, None), lambda _: [_VERDICTS], CSV_WORDS),
        Target("report.json", _report, lambda _: [report(content().to_json()).encode()], JSON_WORDS),
        Target("archive", _unpack, _packed_seeds),
    ]


def _use_config(run: Path) -> None:
    _reading(run, run.parent / "table.csv", {})
    scored_run(run)


def _use_plan(run: Path) -> None:
    from punce.product.review.job import state_of

    state_of(scored_run(run))


def _use_verdicts(run: Path) -> None:
    ReviewFolder(run).verdicts()


def _log_seeds(_: Path) -> list[bytes]:
    return [b'{"key": "bcdf-bbbc", "verdict": "yes", "who": "ann", "at": "2026-01-01T00:00:00+00:00"}\n' * 2]


def _scores_seeds(folder: Path) -> list[bytes]:
    csv = io.BytesIO(_run_file("scores.csv", folder)[0])
    buffer = io.BytesIO()
    pd.read_csv(csv).to_parquet(buffer)
    return [buffer.getvalue()]


def _packed_seeds(folder: Path) -> list[bytes]:
    import tarfile
    import zipfile

    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as archive:
        info = tarfile.TarInfo("top/t.csv")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"a,b"))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("top/t.csv", "a,b\n" * 20)
    return [tar.getvalue(), packed.getvalue()]


TARGETS: dict[str, Target] = {target.name: target for target in (*_tables(), *_arrays(), *_own())}
