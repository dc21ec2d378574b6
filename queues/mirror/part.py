"""Which of several workers writes what (ADR 42).

Rows are divided by a hash of a key, so every worker knows without asking whose a row is.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Part:
    """The part of worker `index` of `count` workers, of the cluster with the uid `cluster`."""

    index: int = 0
    count: int = 1
    cluster: str = ""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"expected at least one worker, got {self.count}")
        if not 0 <= self.index < self.count:
            raise ValueError(
                f"expected a worker from 0 to {self.count - 1} of {self.count}, got {self.index}"
            )

    @property
    def is_alone(self) -> bool:
        """Return whether there is one worker, which writes everything."""
        return self.count == 1

    @property
    def is_first(self) -> bool:
        """Return whether this is the worker that also writes what is not divided."""
        return self.index == 0

    def has(self, key: str) -> bool:
        """Return whether what is divided by this key belongs to the part."""
        return self.count == 1 or crc32(key.encode(errors="replace")) % self.count == self.index

    def named(self, name: str) -> str:
        """Return the name of a process, or of a row of `MirrorState`, of this worker; worker 0 has the plain name."""
        return f"{name}-{self.index}" if self.index else name

    def __str__(self) -> str:
        return f"worker {self.index} of {self.count}"
