"""Temporary files and folders that a killed process leaves are removed by the next one that writes in their folder.

Whoever writes holds a lock on its temporary file, which the system releases when the process ends, however it ends.
What no process holds was left behind. The names end in ``.punce-tmp``, so that no file of another program is touched.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

if find_spec("fcntl"):
    import fcntl

    _CAN_HOLD = True
else:  # a system without flock: what is left behind stays there
    _CAN_HOLD = False

_ENDING = ".punce-tmp"
_OURS = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.punce-tmp")
_ATTEMPTS = 10
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def held_temporary(path: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """A new empty file or folder beside `path`, which this process holds; removed in the end if it is still there."""
    remove_left(path.parent)
    for _ in range(_ATTEMPTS):
        with _made(beside(path), is_folder=is_folder) as temporary:
            if temporary is not None:
                yield temporary
                return
    raise OSError(f"no temporary file can be held beside {path}")


@contextmanager
def _made(temporary: Path, *, is_folder: bool) -> Iterator[Path | None]:
    """Made and held; None if another process took it for left behind in the moment before it was held."""
    with ExitStack() as stack:
        stack.callback(_remove, temporary)  # before it is made: Ctrl-C may come at once
        if is_folder:
            temporary.mkdir()
        else:
            temporary.touch()
        descriptor = _opened(temporary)
        if descriptor is None:
            yield None
            return
        stack.callback(os.close, descriptor)
        yield temporary if not _CAN_HOLD or (_hold(descriptor) and temporary.exists()) else None


def _opened(temporary: Path) -> int | None:
    """A descriptor of what was made; None where another process has removed it in the moment since."""
    try:
        return os.open(temporary, os.O_RDONLY)
    except FileNotFoundError:
        return None


def allow_as(file: Path, mode: int) -> None:
    """Let the same people read a file as one of this mode. Recent versions of safetensors let nobody but the owner."""
    with suppress(OSError):  # a file system without permissions, where all files are alike
        file.chmod(stat.S_IMODE(mode))


def beside(path: Path) -> Path:
    """A unique name: in containers many processes have the same number."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{_ENDING}")


def remove_left(folder: Path) -> None:
    """Remove what killed processes left in a folder."""
    with suppress(OSError):  # it may not be there, or may not be one
        for entry in os.scandir(folder):
            if _OURS.fullmatch(entry.name) and _is_file_or_folder(entry):
                _remove_if_left(Path(entry.path))


def _is_file_or_folder(entry: os.DirEntry[str]) -> bool:
    """Itself, not what it points to. Opening a pipe would wait for ever."""
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def _remove_if_left(temporary: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(temporary, os.O_RDONLY | _NO_WAITING)
        try:
            if _hold(descriptor):
                _remove(temporary)
        finally:
            os.close(descriptor)


def _hold(descriptor: int) -> bool:
    """Lock it for this process until the descriptor is closed; False if another holds it."""
    if not _CAN_HOLD:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(temporary: Path) -> None:
    with suppress(OSError):  # it may be gone, or its folder
        _unlink(temporary)


def _unlink(temporary: Path) -> None:
    if stat.S_ISDIR(temporary.lstat().st_mode):
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary.unlink()
