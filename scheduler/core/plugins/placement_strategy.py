"""Fill nodes up or spread over them, and the same for the devices of one node."""

from __future__ import annotations

from scheduler.core.config import NodePlacementArguments
from scheduler.core.session.hooks import PlacementStrategy
from scheduler.core.session.session import Session


class NodePlacementPlugin:
    """Chooses how the filling of nodes is scored."""

    def __init__(self, arguments: NodePlacementArguments) -> None:
        self._arguments = arguments

    def open(self, session: Session) -> None:
        """Set the strategy."""
        session.hooks.placement = PlacementStrategy(
            cpu_binpack=self._arguments.cpu == "binpack",
            gpu_binpack=self._arguments.gpu == "binpack",
        )


def pack_score(device: tuple[float, float] | None) -> float:
    """Prefer the fullest shared device, a whole one last."""
    return 0.0 if device is None else device[0] / device[1]


def spread_score(device: tuple[float, float] | None) -> float:
    """Prefer a whole device, then the emptiest shared one."""
    return 1.0 if device is None else 1.0 - device[0] / device[1]


class GpuPackPlugin:
    """Fill shared devices up before opening another."""

    def open(self, session: Session) -> None:
        """Set the order of devices."""
        session.hooks.gpu_score = pack_score


class GpuSpreadPlugin:
    """Open whole devices before sharing one."""

    def open(self, session: Session) -> None:
        """Set the order of devices."""
        session.hooks.gpu_score = spread_score
