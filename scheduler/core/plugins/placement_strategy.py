"""Fill nodes up, spread over them or keep GPUs usable, and the same for the devices of one node."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.errors import ConfigError
from scheduler.core.plugins.fragmentation.score import FragmentationScore
from scheduler.core.plugins.spec import ArgumentTexts
from scheduler.core.session import hooks
from scheduler.core.session.hooks import PlacementStrategy
from scheduler.core.session.session import Session

BINPACK, SPREAD, FRAGMENTATION = hooks.BINPACK, hooks.SPREAD, FragmentationScore.name
STRATEGIES = (BINPACK, SPREAD, FRAGMENTATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlacementArguments:
    """binpack, spread or fragmentation, for tasks with and without GPU."""

    cpu: str = BINPACK
    gpu: str = BINPACK

    def __post_init__(self) -> None:
        """Refuse other strategies."""
        for name, value in (("cpu", self.cpu), ("gpu", self.gpu)):
            if value not in STRATEGIES:
                raise ConfigError(
                    f"nodeplacement.{name}: expected one of {', '.join(STRATEGIES)}, got {value!r}"
                )

    @classmethod
    def parse(cls, texts: ArgumentTexts) -> NodePlacementArguments:
        """Return the arguments of a configuration; what it does not name has its default."""
        return cls(cpu=texts.text("cpu", BINPACK), gpu=texts.text("gpu", BINPACK))


class NodePlacementPlugin:
    """Chooses how the filling of nodes is scored."""

    def __init__(self, arguments: NodePlacementArguments) -> None:
        self._arguments = arguments

    def open(self, session: Session) -> None:
        """Set the strategy; tasks whose devices the fragmentation score does not know fill nodes up."""
        cpu, gpu = self._arguments.cpu, self._arguments.gpu
        concerns = None
        if FRAGMENTATION in (cpu, gpu):
            score = FragmentationScore(
                session.state,
                for_cpu_tasks=cpu == FRAGMENTATION,
                for_gpu_tasks=gpu == FRAGMENTATION,
            )
            session.hooks.scores.append(score)
            concerns = score.concerns
        session.hooks.placement = PlacementStrategy(
            cpu_binpack=cpu != SPREAD,
            gpu_binpack=gpu != SPREAD,
            is_scored_otherwise=concerns,
            other=FRAGMENTATION,
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
