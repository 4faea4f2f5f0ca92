"""Commands that run out of disk at a random byte: what they say, what they leave, and how they end when there is room.

By turns the disk is a file system of random size (ENOSPC, whoever writes), and no file may grow beyond a random size
(EFBIG, at any byte). The command must end with 3 and one line (`reproduce`, whose cells fail one by one: with 3, or
with 4 and a line for each), leave no temporary file and nothing half-written, and
end in the bytes of an undisturbed run when it is repeated with room enough.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from tests.faults.kills import Command, Killing, require
from tests.faults.limits import remount, small_disk
from tests.faults.scenes import leftovers

_ROOM = 256 << 20
_MORE = 1.2  # of what is left in the end a run may have needed on the way
_SYSTEM, _INCOMPLETE = 3, 4
_OURS = (".punce-tmp", ".tmp-")


class Starving(Killing):
    """Runs of one scene that have too little room."""

    def one_run(self) -> None:
        """A run on a small disk, or with small files."""
        if self._number % 2:
            self._small_disk()
        else:
            self._small_files()
        self.counts.finished += 1

    def _small_disk(self) -> None:
        out = self._out()
        total = sum(-(-size // mmap.PAGESIZE) for size in self.sizes) * mmap.PAGESIZE
        size = mmap.PAGESIZE * self.rng.randint(1, int(_MORE * total / mmap.PAGESIZE) + 1)
        with small_disk(out.parent, size):
            self._starved(Command(self.scene, self.folder / "inputs", out), out, "full_disks")
            remount(out.parent, f"size={_ROOM}")
            self._repeated(out)

    def _small_files(self) -> None:
        out = self._out()
        limit = self.rng.randint(1, max(self.sizes))
        self._starved(Command(self.scene, self.folder / "inputs", out, file_limit=limit), out, "file_limits")
        self._repeated(out)

    def _starved(self, command: Command, out: Path, name: str) -> None:
        ended = command.ended()
        if all(code == 0 for code, _, _ in ended):
            return
        setattr(self.counts, name, getattr(self.counts, name) + 1)
        codes, said = [code for code, _, _ in ended], ended[0][2]
        some_cells_failed = self.scene.name == "reproduce" and codes == [_INCOMPLETE]
        require(some_cells_failed or set(codes) == {_SYSTEM}, f"{name}: exit codes {codes}, {said[-300:]!r}")
        words = "the same command tries them again" if some_cells_failed else "punce: "
        lines = [line for line in said.splitlines() if words in line]
        require(len(lines) == 1 and "Traceback" not in said, f"{name}: {said[-300:]!r}")
        require(not leftovers(out, _OURS), f"{name}: left {leftovers(out, _OURS)}")
        if not some_cells_failed:  # the file of a failed cell says why; the repeated command replaces it
            self._whole_files(out)

    def _repeated(self, out: Path) -> None:
        self._finish(out)
        self._look(out)
