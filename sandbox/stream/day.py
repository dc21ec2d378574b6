"""A realistic day on a shared GPU cluster, as a seeded sequence of arrivals.

Sizes and durations follow public traces of such clusters: most jobs need one GPU, a tenth need 8 or more,
and run times range over four orders of magnitude around a median of about an hour. Submissions increase
from morning to afternoon, and notebooks arrive in office hours only. The arrival rate follows from the
size of the cluster, so that the requests always exceed it a little.

Pure: no clock and no network. Times are simulated seconds since the start, which is at 8 o'clock.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

HOUR_S = 3600.0
START_HOUR = 8.0
#: Requested GPU time, relative to that of the cluster.
LOAD = 1.15
SHORTEST_S, LONGEST_S = 120.0, 10 * HOUR_S
#: Arrivals that are drawn to measure the average request.
_SAMPLES = 2000

# GPUs of a job, and how many of 15,264 jobs requested that many (Philly trace, by size class).
_SIZES = {1: 10480, 2: 463, 4: 2044, 8: 1916, 16: 255, 32: 91, 64: 15}
# Mean and deviation of the logarithm of the run time in seconds, narrowed to fit into a day.
_DURATIONS = {1: (8.0, 1.6), 2: (9.0, 1.4), 4: (8.8, 1.4), 8: (8.9, 1.4), 16: (8.5, 1.4)}
# Share of the larger jobs that run as several smaller pods, as in data-parallel training.
_SPREAD = 0.4
# Weights of the common GPU fractions among the notebooks that share a GPU.
_FRACTIONS = {0.8: 1078, 0.5: 750, 0.3: 328, 0.65: 253, 0.25: 140}


class Work(StrEnum):
    """The kind of a workload."""

    TRAIN = "train"
    SWEEP = "sweep"
    NOTEBOOK = "notebook"
    PREPARE = "prepare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A team that submits workloads.

    Attributes
    ----------
    quota : share of the cluster's GPUs
    weight : over-quota weight of its queue
    activity : how often it submits, relative to the other teams
    mix : how often it submits each kind of work, relative to the others
    services : name -> share of the cluster that the service uses in the busiest hour
    """

    name: str
    department: str
    title: str
    quota: float
    weight: float
    activity: float
    mix: dict[Work, float]
    users: tuple[str, ...]
    services: tuple[tuple[str, float], ...] = ()


TEAMS = (
    Team(
        name="vision", department="research", title="Vision", quota=0.16, weight=2, activity=3,
        mix={Work.TRAIN: 6, Work.SWEEP: 3, Work.NOTEBOOK: 2}, users=("ada", "bo", "chen"),
    ),
    Team(
        name="language", department="research", title="Language models", quota=0.22, weight=3,
        activity=4, mix={Work.TRAIN: 8, Work.SWEEP: 1, Work.PREPARE: 2},
        users=("dara", "eli", "fatima", "george"),
    ),
    Team(
        name="robotics", department="research", title="Robotics", quota=0.08, weight=1, activity=1.5,
        mix={Work.TRAIN: 3, Work.SWEEP: 4, Work.NOTEBOOK: 2}, users=("hana", "ivan"),
    ),
    Team(
        name="search", department="product", title="Search", quota=0.14, weight=1, activity=1,
        mix={Work.TRAIN: 2, Work.PREPARE: 2}, users=("jo", "kim"),
        services=(("ranker", 0.05), ("embedder", 0.02)),
    ),
    Team(
        name="assistant", department="product", title="Assistant", quota=0.14, weight=2, activity=1.5,
        mix={Work.TRAIN: 2, Work.NOTEBOOK: 1}, users=("lena", "mo"),
        services=(("chat", 0.06), ("speech", 0.02)),
    ),
    Team(
        name="evaluation", department="platform", title="Evaluation", quota=0.06, weight=1,
        activity=2, mix={Work.SWEEP: 4, Work.PREPARE: 3}, users=("ci-bot",),
    ),
)  # fmt: skip
DEPARTMENTS = {"research": "Research", "product": "Product", "platform": "Platform"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One workload: `pods` pods of `gpus` GPUs each (a fraction if below 1, none if 0)."""

    at_s: float
    work: Work
    team: Team
    user: str
    pods: int
    gpus: float
    duration_s: float
    is_failing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The size of the cluster: its GPUs, and the GPUs of its largest node."""

    gpus: int
    per_node: int = 8


def arrivals(
    cluster: Cluster, *, seed: int, fractions: float = 0.0, load: float = LOAD
) -> Iterator[Arrival]:
    """Yield workloads in the order of their arrival, without end.

    Parameters
    ----------
    seed : the same seed gives the same day
    fractions : share of the notebooks that share a GPU, 0 to 1
    load : requested GPU time, relative to that of the cluster
    """
    rng = random.Random(seed)
    sample = random.Random(seed + 1)
    mean = (
        sum(
            arrival.pods * arrival.gpus * arrival.duration_s
            for arrival in (_draw_arrival(sample, cluster, 0.0, fractions) for _ in range(_SAMPLES))
        )
        / _SAMPLES
    )
    peak_rate = load * cluster.gpus / mean / _MEAN_RATE
    at_s = 0.0
    while True:
        at_s += rng.expovariate(peak_rate)
        # Thinning: draw candidates at the highest rate, and drop more of them in quiet hours.
        if rng.random() < relative_rate(at_s):
            yield _draw_arrival(rng, cluster, at_s, fractions)


def relative_rate(at_s: float) -> float:
    """Return the relative arrival rate, from 0.3 at night to 1 in the early afternoon."""
    hour = (START_HOUR + at_s / HOUR_S) % 24
    return 0.3 + 0.7 * math.exp(-(((hour - 14.0) / 4.5) ** 2))


def service_replicas(share: float, cluster: Cluster, at_s: float) -> int:
    """Return the one-GPU replicas that a service runs now, if it uses `share` of the cluster at its busiest."""
    max_gpus = max(1, round(share * cluster.gpus))
    return max(1, round(max_gpus * (0.5 + 0.5 * relative_rate(at_s))))


_MEAN_RATE = sum(relative_rate(step * HOUR_S / 4) for step in range(96)) / 96


def _draw_arrival(rng: random.Random, cluster: Cluster, at_s: float, fractions: float) -> Arrival:
    team = rng.choices(TEAMS, [team.activity for team in TEAMS])[0]
    work = rng.choices(list(team.mix), list(team.mix.values()))[0]
    hour = (START_HOUR + at_s / HOUR_S) % 24
    if work is Work.NOTEBOOK and not 8 <= hour < 19:
        work = Work.TRAIN
    pods, gpus = _draw_size(rng, work, cluster, fractions)
    return Arrival(
        at_s=at_s,
        work=work,
        team=team,
        user=rng.choice(team.users),
        pods=pods,
        gpus=gpus,
        duration_s=_draw_duration(rng, work, pods * gpus),
        is_failing=work is not Work.NOTEBOOK and rng.random() < 0.04,
    )


def _draw_size(
    rng: random.Random, work: Work, cluster: Cluster, fractions: float
) -> tuple[int, float]:
    """Return (pods, GPUs of each)."""
    if work is Work.PREPARE:
        return rng.randint(1, 4), 0.0
    if work is Work.NOTEBOOK:
        is_shared = rng.random() < fractions
        return 1, rng.choices(list(_FRACTIONS), list(_FRACTIONS.values()))[0] if is_shared else 1.0
    if work is Work.SWEEP:
        return rng.randint(2, 8), 1.0
    max_gpus = max(1, cluster.gpus // 3)
    sizes = [size for size in _SIZES if size <= max_gpus]
    size = rng.choices(sizes, [_SIZES[size] for size in sizes])[0]
    per_pod = min(size, cluster.per_node)
    if size >= 4 and rng.random() < _SPREAD:
        per_pod = max(1, per_pod // rng.choice((2, 4)))
    return size // per_pod, float(per_pod)


def _draw_duration(rng: random.Random, work: Work, gpus: float) -> float:
    if work is Work.NOTEBOOK:
        mean, spread = math.log(1.5 * HOUR_S), 0.7
    elif work is Work.PREPARE:
        mean, spread = math.log(0.3 * HOUR_S), 0.8
    else:
        mean, spread = _DURATIONS.get(int(gpus), _DURATIONS[16])
    return min(LONGEST_S, max(SHORTEST_S, rng.lognormvariate(mean, spread)))
