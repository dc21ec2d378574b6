"""A wall clock that can be set for the processes of kaiweb alone, without root and without touching the machine's."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


@dataclass(frozen=True, slots=True)
class TestClock:
    """A file with the offset in seconds, and the library that adds it."""

    file: Path
    library: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of a process that reads this clock."""
        return {"LD_PRELOAD": str(self.library), "KAIWEB_TEST_CLOCK": str(self.file)}

    def set_offset(self, seconds: float) -> None:
        """Let the clock of all processes differ from the machine's by so much, at once."""
        with self.file.open("r+b") as file:
            file.write(struct.pack("d", seconds))


def make_clock(folder: Path) -> TestClock | None:
    """Compile the library; None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    clock = TestClock(folder / "clock", folder / "clock.so")
    clock.file.write_bytes(struct.pack("d", 0.0))
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "-o", str(clock.library), str(SOURCE), "-ldl"],
        check=True,
    )
    return clock
