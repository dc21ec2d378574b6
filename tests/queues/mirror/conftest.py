from __future__ import annotations

from datetime import UTC, datetime

import pytest

from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.writer import Writer

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Clock:
    """Hands out times in order and remembers pauses."""

    def __init__(self) -> None:
        self.time = NOON
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def mirror(clock: Clock) -> Mirror:
    return Mirror(KINDS, Writer(sleep=clock.sleep), now=clock.now)
