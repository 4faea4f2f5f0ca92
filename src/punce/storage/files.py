"""Files that are there whole or not at all."""

from __future__ import annotations

import difflib
import hashlib
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from punce.errors import InputError, WriteError
from punce.storage.parts import is_pattern, part_files, require_matches
from punce.storage.temporary import allow_as, held_temporary


@contextmanager
def replacing(path: Path, *, in_folder: bool = False) -> Iterator[Path]:
    """A temporary path to write to; it takes the place of `path` if the block ends well and is removed if not.

    `in_folder` is for safetensors, which writes to a file of its own beside the one it is given and renames that: a
    killed process would leave it, and what was held is no longer there. So both get a folder, and that is held.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with held_temporary(path, is_folder=in_folder) as held:
            temporary = held / path.name if in_folder else held
            temporary.touch()
            mode = temporary.stat().st_mode
            yield temporary
            allow_as(temporary, mode)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())  # renamed before its content is on disk, a file can be empty after a power cut
            temporary.replace(path)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8 with its line ends as they are, replacing the file as a whole."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def file_sha256(path: Path) -> str:
    """Hex digest of a file, read in chunks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether this process alone holds the lock on `path` inside the block; False if another does, without waiting.

    The system releases the lock when the process ends, however it ends. The file stays: where work
    goes on after the lock, removing it would let two processes each hold "the" lock.
    """
    lock = FileLock(path, blocking=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def existing(path: str | Path) -> Path:
    """The path of a file or folder that is there, or a pattern that matches; the error names similar files."""
    path = Path(path).expanduser()
    if is_pattern(path):
        return require_matches(path)
    if not _is_there(path) and path.is_symlink():
        raise InputError(f"{path} is a link to nothing, or to itself; name the file it should lead to")
    if not _is_there(path):
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, siblings, n=2)
        raise InputError(f"{path} does not exist" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    if not path.is_file() and not path.is_dir():  # files are read more than once, which a pipe cannot be
        raise InputError(f"{path} is no file and no folder but a pipe or a device; write its content to a file first")
    return path


def as_argument(path: Path) -> str:
    """A path as part of a command that a person may copy: in quotes where it holds spaces."""
    return shlex.quote(str(path))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise InputError(f"{str(path)[:200]} cannot be looked at: {error.strerror or error}") from error


def check_output(out: Path) -> None:
    """Refuse a place at which no file can be written, whatever the disk: a folder, or a path through a file."""
    if _is_there(out) and out.is_dir():
        raise InputError(f"{out} is a folder; name a file with --out")
    _check_parents(out, "--out")


def check_output_folder(out: Path, option: str = "--out") -> None:
    """Refuse a place at which no folder can be made: a file, a link to nothing, or a path through one."""
    if not _is_there(out) and out.is_symlink():
        raise InputError(f"{out} is a link to nothing, or to itself; name another folder with {option}")
    if _is_there(out) and not out.is_dir():
        raise InputError(f"{out} is a file; name a folder with {option}")
    _check_parents(out, option)


def _check_parents(out: Path, option: str) -> None:
    for parent in out.parents:
        if not _is_there(parent) and parent.is_symlink():
            raise InputError(f"{parent} is a link to nothing, or to itself; name another place with {option}")
        if _is_there(parent):
            if not parent.is_dir():
                raise InputError(f"{out} cannot be made: {parent} is a file; name another place with {option}")
            return


def file_and_table(path: str | Path, table: str | None = None) -> tuple[Path, str | None]:
    """``file.sqlite::customers`` as the file and the table in it."""
    file, mark, named = str(path).partition("::")
    if not mark or Path(path).expanduser().exists():
        return Path(path), table
    if table is not None and table != named:
        raise InputError(f"two tables are named, {named!r} and {table!r}; name one")
    return Path(file), named


def refuse_to_replace_input(out: Path, *inputs: Path | None) -> None:
    """Refuse to write a result over a file that is read, or over one in a folder that is read."""
    for source in inputs:
        if source is not None and out.exists() and any(_is_or_holds(one, out) for one in _read_files(source)):
            raise InputError(f"{out} would replace what the command reads ({source}); name another file with --out")


def refuse_to_replace_others(out: Path, what: str, is_ours: Callable[[Path], bool], option: str = "--out") -> None:
    """Refuse to write a result over a file that is no earlier result of the kind `what`, unless it is empty."""
    if out.is_file() and out.stat().st_size and not is_ours(out):
        raise InputError(f"{out} is not {what} and would be replaced; name another file with {option}")


def _read_files(source: Path) -> list[Path]:
    return part_files(source) if is_pattern(source) else [source.expanduser()]


def _is_or_holds(source: Path, file: Path) -> bool:
    if not source.exists():
        return False  # the reader reports it
    return file.samefile(source) or (source.is_dir() and source.resolve() in file.resolve().parents)
