"""Full and read-only disks, a clock that goes back, two commands on one folder: real processes, every command."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.copies import ROOT, import_everything
from tests.faults.kills import Command, Killing, require
from tests.faults.limits import remount, small_disk
from tests.faults.scenes import SCENES
from tests.quick import make_quick

pytestmark = [pytest.mark.slow, pytest.mark.faults]
SHORT = ("fit table", "fit embedding network", "fit embedding, two ranks", "predict", "prior", "reproduce")
_SYSTEM, _BAD_INPUT = 3, 2
_ROOM = 64 << 20


class Surroundings(Killing):
    """One scene in surroundings that are not as they should be."""

    def read_only(self) -> None:
        """Results cannot be written: one line. Inputs that cannot be written are read as any."""
        inputs, out = self.folder / "inputs", self._out()
        with small_disk(out.parent, _ROOM):
            remount(out.parent, "ro")
            _one_line(Command(self.scene, inputs, out).ended(), _SYSTEM, "Read-only file system")
            require(not any(out.parent.iterdir()), "something was written to a read-only disk")
        with small_disk(inputs, _ROOM):
            self.scene.inputs(inputs)
            remount(inputs, "ro")
            self._ended_well(Command(self.scene, inputs, out), out)

    def backwards(self) -> None:
        """The clock goes back at every look, and the inputs are from the future."""
        out = self._out()
        for file in (self.folder / "inputs").rglob("*"):
            os.utime(file, (4e9, 4e9))
        self._ended_well(Command(self.scene, self.folder / "inputs", out, backwards=True), out)

    def together(self) -> None:
        """Two at the same time: whoever is refused says so in one line, and the results are those of one."""
        out = self._out()
        both = [Command(self.scene, self.folder / "inputs", out) for _ in range(2)]
        ended = [command.ended()[0] for command in both]
        require(any(code == 0 for code, _, _ in ended), f"neither ended well: {ended}")
        for one in ended:
            if one[0] != 0:
                _one_line([one], _BAD_INPUT, str(out))
        self._look(out)

    def _ended_well(self, command: Command, out: Path) -> None:
        ended = command.ended()
        require(all(code == 0 for code, _, _ in ended), f"{[end[2][-300:] for end in ended]}")
        self._look(out)


def _one_line(ended: list[tuple[int, str, str]], code: int, words: str) -> None:
    for found, _, said in ended:
        lines = [line for line in said.splitlines() if line.startswith("punce: ")]
        require(found == code and len(lines) == 1, f"exit code {found}: {said[-300:]!r}")
        require("Traceback" not in said, said[-300:])
    require(words in ended[0][2], f"{words!r} is not in {ended[0][2][-300:]!r}")


@pytest.mark.parametrize("name", [name for name in SHORT if SCENES[name].ranks == 1])
@pytest.mark.parametrize("way", ["read_only", "backwards", "together"])
def test_every_command_in_odd_surroundings(name: str, way: str) -> None:
    line = [sys.executable, "-m", "tests.faults.test_surroundings", name, way]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PUNCE_IMAGE_ENCODER": ""}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", SHORT)
def test_a_disk_that_is_full(name: str, tmp_path: Path) -> None:
    from tests.faults.test_kills import disturbed

    counts = disturbed(tmp_path / "faults.json", (name,), seconds=1.0, each=1.0, by="disks")[name]
    assert counts["broken"] == []
    assert counts["finished"]


def main() -> None:
    """One scene in one way, in this process."""
    import_everything()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as scratch:
        make_quick(patch)
        try:
            getattr(Surroundings(SCENES[sys.argv[1]], Path(scratch), 0), sys.argv[2])()
        except pytest.skip.Exception as reason:
            sys.stdout.write(f"skipped: {reason}")


if __name__ == "__main__":
    main()
