"""A gateway that stops its binder at one write: for good, as kill -9 does, or while others go on, as SIGSTOP does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.gateway import FakeGateway

WRITES = ("create", "patch", "replace", "delete", "bind")


class Killed(BaseException):
    """The process is dead; nothing of its own handles that."""


def kill() -> None:
    """End the binder where it is."""
    raise Killed


@dataclass
class InterruptedGateway:
    """Passes everything on to a fake cluster, and calls `interrupt` once, at write number `at`.

    Attributes
    ----------
    is_answer_lost : interrupt after the server has carried out the write, else before
    """

    cluster: FakeGateway
    at: int
    is_answer_lost: bool
    interrupt: Callable[[], None]
    writes: int = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.cluster, name)
        if name not in WRITES:
            return method

        def write(*args: Any, **kwargs: Any) -> Any:
            number, self.writes = self.writes, self.writes + 1
            if number == self.at and not self.is_answer_lost:
                self.interrupt()
            answer = method(*args, **kwargs)
            if number == self.at and self.is_answer_lost:
                self.interrupt()
            return answer

        return write
