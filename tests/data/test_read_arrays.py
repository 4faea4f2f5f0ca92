from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from punce.data import read, stream
from punce.errors import InputError

LABELS = np.array([1, 0, 0, 1, 0, 0])


def _matrix() -> np.ndarray:
    return np.random.RandomState(0).standard_normal((6, 4)).astype(np.float32)


def _labels_csv(folder: Path, values: np.ndarray = LABELS) -> Path:
    path = folder / "labels.csv"
    path.write_text("row,label\n" + "".join(f"{k},{v}\n" for k, v in enumerate(values)))
    return path


def test_npz_with_labels_and_ids_inside(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", X=_matrix(), y=LABELS, ids=np.array(list("abcdef")))
    data = read(tmp_path / "e.npz")
    assert data.kind == "embedding"
    assert (data.features == _matrix()).all()
    assert data.labels is not None
    assert data.labels.tolist() == LABELS.tolist()
    assert data.ids.tolist() == list("abcdef")


def test_npz_with_named_keys(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", vectors=_matrix(), target=LABELS)
    data = read(tmp_path / "e.npz", "target")
    assert data.labels is not None
    assert data.labels.sum() == 2


@pytest.mark.parametrize("form", ["csv", "npy"])
def test_npy_with_labels_in_another_file(form: str, tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", _matrix())
    if form == "csv":
        data = read(tmp_path / "e.npy", "label", labels=_labels_csv(tmp_path))
    else:
        np.save(tmp_path / "y.npy", LABELS)
        data = read(tmp_path / "e.npy", labels=tmp_path / "y.npy")
    assert data.labels is not None
    assert data.labels.tolist() == LABELS.tolist()
    assert isinstance(data.features, np.memmap)  # read from disk when used


def test_npy_streams_in_batches(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", _matrix())
    rows = stream(tmp_path / "e.npy", "label", labels=_labels_csv(tmp_path), batch_rows=4)
    batches = list(rows.batches())
    assert [len(batch) for batch in batches] == [4, 2]
    assert (np.concatenate([batch.features for batch in batches]) == _matrix()).all()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_stack_of_pictures_comes_out_as_nchw(layout: str, tmp_path: Path) -> None:
    pictures = np.random.RandomState(0).randint(0, 256, (6, 3, 8, 8)).astype(np.uint8)
    np.save(tmp_path / "p.npy", pictures if layout == "NCHW" else pictures.transpose(0, 2, 3, 1))
    data = read(tmp_path / "p.npy")
    assert data.kind == "image"
    assert (data.load() == pictures).all()


# --- what is refused ----------------------------------------------------------------------------------------------


def test_pickles_are_refused_unopened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.write_text, (tmp_path / "sprung", "x"))

    np.save(tmp_path / "o.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "o.npz", X=np.array([Trap()], dtype=object))
    for name in ("o.npy", "o.npz"):
        with pytest.raises(InputError, match=f"{name} holds Python objects"):
            read(tmp_path / name)
    (tmp_path / "bare.npy").write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(InputError, match=r"bare\.npy (holds Python objects|cannot be read)"):
        read(tmp_path / "bare.npy")
    assert not (tmp_path / "sprung").exists()


def test_a_wrong_npz_key_lists_the_keys(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", X=_matrix(), target=LABELS)
    with pytest.raises(InputError, match=r"no column 'targets'; did you mean 'target'\? \(it has: X, target\)"):
        read(tmp_path / "e.npz", "targets")
    with pytest.raises(InputError, match="no column 'names'"):
        read(tmp_path / "e.npz", "target", id="names")


def test_an_npz_file_without_clear_features_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", a=_matrix(), b=_matrix())
    with pytest.raises(InputError, match=r"which array holds the features.*\['a', 'b'\]"):
        read(tmp_path / "e.npz")


def test_mismatched_lengths_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", _matrix())
    with pytest.raises(InputError, match=r"labels\.csv has 5 labels for 6 rows"):
        read(tmp_path / "e.npy", "label", labels=_labels_csv(tmp_path, LABELS[:5]))
    np.savez(tmp_path / "e.npz", X=_matrix(), y=LABELS[:5])
    with pytest.raises(InputError, match="6 rows but 5 labels"):
        read(tmp_path / "e.npz")
    np.savez(tmp_path / "i.npz", X=_matrix(), y=LABELS, ids=np.arange(5))
    with pytest.raises(InputError, match="6 rows but 5 row names"):
        read(tmp_path / "i.npz")
    np.savez(tmp_path / "i.npz", X=_matrix(), y=LABELS, ids=np.arange(6)[:, None])
    with pytest.raises(InputError, match=r"row names of shape \(6, 1\); give one name for each row"):
        read(tmp_path / "i.npz")


def test_labels_beside_row_numbers_go_to_these_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.random.default_rng(0).normal(size=(4, 3)))
    (tmp_path / "labels.csv").write_text("row,hit\n2,1\n0,0\n3,1\n1,0\n")
    data = read(tmp_path / "e.npy", "hit", labels=tmp_path / "labels.csv")
    assert np.asarray(data.labels).tolist() == [0, 0, 1, 1]
    (tmp_path / "labels.csv").write_text("row,hit\n2,1\n0,0\n3,1\n3,0\n")
    with pytest.raises(InputError, match="a column 'row' that does not hold 0 to 3, each once"):
        read(tmp_path / "e.npy", "hit", labels=tmp_path / "labels.csv")


def test_labels_that_are_nowhere_are_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", _matrix())
    with pytest.raises(InputError, match=r"holds no labels; name a file .*--labels"):
        read(tmp_path / "e.npy", "label")
    with pytest.raises(InputError, match="name the one with the labels"):
        read(tmp_path / "e.npy", labels=_labels_csv(tmp_path))
    np.save(tmp_path / "y.npy", LABELS)
    with pytest.raises(InputError, match=r"--label has no effect: .*y\.npy is an array"):
        read(tmp_path / "e.npy", "fraud", labels=tmp_path / "y.npy")
    (tmp_path / "labels.dat").write_text("1\n0\n")
    with pytest.raises(InputError, match=r"labels come from a \.csv"):
        read(tmp_path / "e.npy", labels=tmp_path / "labels.dat")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(5), "array of shape"),
        (np.zeros((3, 4, 5)), "array of shape"),
        (np.zeros((0, 5)), r"e\.npy has no rows: its array has the shape \(0, 5\)"),
        (np.zeros((4, 3, 8, 8)), "or uint8 images"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.zeros((2, 2), dtype=complex), "real numbers"),
    ],
)
def test_arrays_of_another_form_are_refused(array: np.ndarray, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", array)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "e.npy")


@pytest.mark.faults
def test_damaged_files_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", _matrix())
    (tmp_path / "e.npy").write_bytes((tmp_path / "e.npy").read_bytes()[:150])
    with pytest.raises(InputError, match=r"e\.npy cannot be read as a NumPy file"):
        read(tmp_path / "e.npy")
    (tmp_path / "e.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(InputError, match=r"e\.npz cannot be read as a NumPy file"):
        read(tmp_path / "e.npz")


def test_wrong_endings_are_told(tmp_path: Path) -> None:
    with (tmp_path / "e.npz").open("wb") as stream:
        np.save(stream, _matrix())
    with pytest.raises(InputError, match=r"it is no \.npz archive"):
        read(tmp_path / "e.npz")
    with (tmp_path / "e.npy").open("wb") as stream:
        np.savez(stream, X=_matrix())
    with pytest.raises(InputError, match=r"give it the ending \.npz"):
        read(tmp_path / "e.npy")


def test_an_array_is_no_table(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", _matrix())
    with pytest.raises(InputError, match="kind='table' needs a CSV or Parquet file"):
        read(tmp_path / "e.npy", kind="table")
