"""A slow and obviously right search on tiny clusters: could the one pending pod group be served?

Whole GPUs or parts of one, few pod slots, gangs with more pods than their minimum, minimum runtimes. The pods
of the pod group are equal and there is no topology, so whether they fit is a count of places. All sets of
victims that the rules allow are tried, without moving anybody. What the search finds the core must find too
within a few cycles; the core may find more, because it also moves pods.

Amounts are whole hundredths of a GPU. Every device has 100 MiB, so these are its MiB too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from tests.scheduler.fuzz.cycles import Finding, next_document, play
from tests.scheduler.fuzz.generate import GB, Document, Ledger, document_of

#: In how many cycles the core has to serve what can be served.
CYCLES = 4
EVICTOR = "ask"
#: The whole of a device.
DEVICE = 100
WHOLE_REQUESTS: list[Document] = [{"gpu": 1}, {"gpu": 1}, {"gpu": 1}, {"gpu": 2}]
SHARED_REQUESTS: list[Document] = [
    {"gpu_fraction": 0.5},
    {"gpu_fraction": 0.3},
    {"gpu_memory_mib": 50},
    {"gpu_memory_mib": 70},
]


def tiny_document(rng: random.Random, number: int) -> Document:
    """Return two or three small nodes, at most six pods, and one pod group that waits."""
    has_shares = rng.random() < 0.5
    requests = WHOLE_REQUESTS + (SHARED_REQUESTS if has_shares else [])
    slots = [3, 4, 110] if rng.random() < 0.3 else [110]
    nodes = [
        _node(index, rng.choice([1, 2, 2]), rng.choice(slots)) for index in range(rng.randint(2, 3))
    ]
    ledger = Ledger(nodes)
    queues = _queues(rng, sum(node["gpu"] for node in nodes), 2 if has_shares else 1)
    leaves = [queue["name"] for queue in queues if queue["parent"]]
    # Mostly somebody with a right to more waits, while the cluster is full.
    rich = max(queues, key=lambda queue: (queue["parent"] is not None, queue["gpu"]["quota"]))
    own = rich["name"] if rng.random() < 0.7 else rng.choice(leaves)
    new_job = partial(_job, rng, requests)
    evictor = new_job(EVICTOR, own, rng.choice([1, 1, 2, 3]))
    pods_left = 6 - len(evictor["tasks"])
    jobs = [evictor]
    for index in range(8):
        job = new_job(f"r{index}", rng.choice(leaves), rng.choice([1, 1, 2, 3]))
        if rng.random() < 0.85 and len(job["tasks"]) <= pods_left and _run(rng, job, ledger):
            pods_left -= len(job["tasks"])
            jobs.append(job)
    return document_of(f"fuzz/tiny-{number}", nodes, queues, jobs)


def misses(document: Document) -> Iterator[Finding]:
    """Report a pod group that could be served but is not."""
    victims = Tiny.of(document).victims_that_help()
    if victims is None:
        return
    current = document
    for cycle in range(CYCLES):
        cycle_run = play(current)
        evictor = cycle_run.pods_of(EVICTOR)
        minimum = _job_of(document, EVICTOR)["min_available"]
        if sum(pod.held_before for pod in evictor) >= minimum:
            return
        if not victims and cycle == 0 and sum(pod.holds_after for pod in evictor) < minimum:
            yield Finding("free room not used", "the waiting pod group fits without any victim")
            return
        current = next_document(cycle_run)
    yield Finding("servable work not served", f"would fit if {victims} went; {CYCLES} cycles")


@dataclass(frozen=True, slots=True)
class Tiny:
    """A tiny cluster in plain numbers."""

    document: Document
    held: dict[str, int]
    non_preemptible: dict[str, int]
    queues: dict[str, Any]

    @classmethod
    def of(cls, document: Document) -> Tiny:
        """Read a document."""
        queues = {queue["name"]: queue for queue in document["cluster"]["queues"]}
        tiny = cls(
            document,
            dict.fromkeys(queues, 0),
            dict.fromkeys(queues, 0),
            queues,
        )
        for job in document["jobs"]:
            for task in job["tasks"]:
                if task["state"] == "running":
                    for name in tiny.path(job["queue"]):
                        tiny.held[name] += _amount(job)
                        tiny.non_preemptible[name] += 0 if job["preemptible"] else _amount(job)
        return tiny

    def path(self, queue: str) -> list[str]:
        """Return a queue and its ancestors, leaf to root."""
        path = []
        current: str | None = queue
        while current:
            path.append(current)
            current = self.queues[current]["parent"]
        return path

    def victims_that_help(self) -> list[str] | None:
        """Return pods whose going makes room by the rules; empty if none has to go, None if none help."""
        evictor = _job_of(self.document, EVICTOR)
        if any(task["state"] != "pending" for task in evictor["tasks"]):
            return None
        needed = _amount(evictor) * evictor["min_available"]
        if not evictor["min_available"] or not self._passes_gates(evictor, needed):
            return None
        if self._fits(evictor, []):
            return []
        for allowed in (self._reclaim_sets(evictor, needed), self._preempt_sets(evictor)):
            for chunks in allowed:
                tasks = [task for chunk in chunks for task in chunk]
                if self._fits(evictor, tasks):
                    return [task["id"] for task in tasks]
        return None

    def _passes_gates(self, evictor: Document, needed: int) -> bool:
        for name in self.path(evictor["queue"]):
            quota, limit = _bound(self.queues[name], "quota"), _bound(self.queues[name], "limit")
            if self.held[name] + needed > limit:
                return False
            if not evictor["preemptible"] and self.non_preemptible[name] + needed > quota:
                return False
        return True

    def _fits(self, evictor: Document, leaving: list[Document]) -> bool:
        gone = {task["id"] for task in leaving}
        places = sum(
            self._places_on(node, evictor, gone) for node in self.document["cluster"]["nodes"]
        )
        return places >= evictor["min_available"]

    def _places_on(self, node: Document, evictor: Document, gone: set[str]) -> int:
        """Return how many pods of the evictor a node can run beside what stays."""
        gpus, slots, shared = node["gpu"], node["max_pods"], dict[str, int]()
        for job in self.document["jobs"]:
            for task in job["tasks"]:
                if task.get("node") != node["name"] or task["id"] in gone:
                    continue
                slots -= 1
                if _is_shared(job):
                    [device] = task["gpu_groups"]
                    shared[device] = shared.get(device, 0) + _amount(job)
                else:
                    gpus -= job["request"]["gpu"]
        gpus, slots = gpus - len(shared), slots - len(shared)
        if not _is_shared(evictor):
            return max(min(gpus * DEVICE // _amount(evictor), slots), 0)
        places = sum((DEVICE - used) // _amount(evictor) for used in shared.values())
        places = min(places, slots)
        # A further device takes the slot of its reservation pod besides those of its pods.
        slots -= places
        for _ in range(gpus):
            more = max(min(DEVICE // _amount(evictor), slots - 1), 0)
            places, slots = places + more, slots - more - 1
        return max(places, 0)

    def _reclaim_sets(self, evictor: Document, needed: int) -> Iterator[list[list[Document]]]:
        """Yield what a queue that stays within its quota on every level may take from others."""
        own = self.path(evictor["queue"])
        if any(self.held[name] + needed > _bound(self.queues[name], "quota") for name in own):
            return
        jobs = [job for job in self._victim_jobs() if job["queue"] != evictor["queue"]]
        for victims in _prefixes([(job, self._reclaimable(own, job)) for job in jobs]):
            losses: dict[str, list[int]] = {}
            for job, chunks in victims:
                other = self._diverging(own, self.path(job["queue"]))
                losses.setdefault(other, []).extend(len(chunk) * _amount(job) for chunk in chunks)
            if all(self._may_lose(name, sizes) for name, sizes in losses.items()):
                yield [chunk for _, chunks in victims for chunk in chunks]

    def _may_lose(self, queue: str, sizes: list[int]) -> bool:
        """Return whether the queue is above its quota before each chunk, the largest being the last."""
        before_last = self.held[queue] - sum(sizes) + max(sizes, default=0)
        return not sizes or before_last > _bound(self.queues[queue], "quota")

    def _preempt_sets(self, evictor: Document) -> Iterator[list[list[Document]]]:
        """Yield what less important work of the same queue may be taken."""
        jobs = [
            job
            for job in self._victim_jobs()
            if job["queue"] == evictor["queue"] and job["priority"] < evictor["priority"]
        ]
        for victims in _prefixes([(job, self._preemptable(job)) for job in jobs]):
            yield [chunk for _, chunks in victims for chunk in chunks]

    def _preemptable(self, job: Document) -> _Chunks:
        """Return what a job may lose to preempt: its surplus only while it is protected."""
        return _chunks(job, self._min_runtime(self.path(job["queue"]), "preempt"))

    def _reclaimable(self, own: list[str], job: Document) -> _Chunks:
        """Return what a job may lose to a queue; the value next below the common ancestor counts first."""
        path = self.path(job["queue"])
        diverging = self._diverging(own, path)
        return _chunks(job, self._min_runtime(path[path.index(diverging) :], "reclaim"))

    def _min_runtime(self, path: list[str], kind: str) -> float:
        values = [self.queues[name].get(f"{kind}_min_runtime_seconds") for name in path]
        return float(next((value for value in values if value is not None), 0))

    def _victim_jobs(self) -> list[Document]:
        jobs = [job for job in self.document["jobs"] if job["name"] != EVICTOR]
        return [job for job in jobs if job["preemptible"] and _chunks(job, 0)]

    def _diverging(self, own: list[str], other: list[str]) -> str:
        name = ""
        for left, name in zip(reversed(own), reversed(other), strict=False):
            if left != name:
                break
        return name


_Chunks = list[list[Document]]
_Taken = list[tuple[Document, _Chunks]]


def _prefixes(jobs: _Taken) -> Iterator[_Taken]:
    """Yield for each combination of jobs the first 0, 1, 2 ... chunks of each."""
    for counts in product(*(range(len(chunks) + 1) for _, chunks in jobs)):
        yield [(job, chunks[:count]) for (job, chunks), count in zip(jobs, counts, strict=True)]


def _chunks(job: Document, min_runtime_s: float) -> _Chunks:
    """Return what a pod group loses step by step: each pod beyond its minimum, then the rest.

    A pod group that has run for less than the minimum runtime keeps its minimum.
    """
    running = [task for task in job["tasks"] if task["state"] == "running"]
    minimum = job["min_available"]
    surplus = [[task] for task in reversed(running[minimum:])]
    core = running[:minimum]
    is_protected = -job.get("last_start_offset_seconds", float("-inf")) < min_runtime_s
    return surplus + ([core] if core and not is_protected else [])


def _is_shared(job: Document) -> bool:
    return "gpu" not in job["request"]


def _amount(job: Document) -> int:
    """Return what each pod of a job takes, in hundredths of a GPU."""
    request = job["request"]
    gpus = request.get("gpu", 0) + request.get("gpu_fraction", 0)
    return round(gpus * DEVICE) + int(request.get("gpu_memory_mib", 0))


def _job_of(document: Document, name: str) -> Document:
    return next(job for job in document["jobs"] if job["name"] == name)


def _bound(queue: Document, kind: str) -> float:
    value = queue["gpu"][kind]
    return float("inf") if value == -1 else round(value * DEVICE)


def _node(index: int, gpus: int, max_pods: int) -> Document:
    node = {"name": f"n{index}", "gpu": gpus, "cpu_millis": 64_000, "memory_bytes": 64 * GB}
    return node | {"max_pods": max_pods, "gpu_memory_mib": DEVICE, "labels": {}}


def _queues(rng: random.Random, gpus: int, parts: int) -> list[Document]:
    """Return two top queues with one or two leaves each, whose quotas add up to the cluster at most.

    parts : quotas are multiples of this part of a GPU
    """
    queues = []
    remaining = gpus * parts
    for top in "ab":
        share = rng.randint(0, remaining)
        remaining -= share
        queues.append(_queue(rng, top, None, share / parts))
        leaf_left = share
        for number in range(rng.randint(1, 2)):
            quota = rng.randint(0, leaf_left)
            leaf_left -= quota
            queues.append(_queue(rng, f"{top}{number}", top, quota / parts))
    return queues


def _queue(rng: random.Random, name: str, parent: str | None, quota: float) -> Document:
    limit = rng.choice([-1, -1, -1, -1, quota + 1])
    gpu = {"quota": quota, "limit": limit, "over_quota_weight": rng.choice([0, 1, 1, 2])}
    created = -1000 + ord(name[0]) + len(name)
    queue = {"name": name, "parent": parent, "created_offset_seconds": created, "gpu": gpu}
    for kind in ("preempt", "reclaim"):
        if rng.random() < 0.1:
            queue[f"{kind}_min_runtime_seconds"] = rng.choice([0, 600])
    return queue


def _job(
    rng: random.Random, requests: list[Document], name: str, queue: str, count: int
) -> Document:
    priority = rng.choice([50, 50, 75, 100])
    return {
        "name": name,
        "queue": queue,
        "priority": priority,
        "preemptible": priority < 100,
        "created_offset_seconds": -(ord(name[-1])),
        "request": {**rng.choice(requests), "cpu_millis": 100, "memory_bytes": GB},
        "min_available": count if rng.random() < 0.7 else rng.randint(0, count),
        "tasks": [{"id": f"{name}-{number}", "state": "pending"} for number in range(count)],
    }


def _run(rng: random.Random, job: Document, ledger: Ledger) -> bool:
    """Place all pods of a job on random nodes; return whether they fit, else leave everything as it was."""
    free = {name: dict(amounts) for name, amounts in ledger.free.items()}
    shared = {name: dict(shares) for name, shares in ledger.shared.items()}
    places = []
    for _ in job["tasks"]:
        for node in rng.sample(ledger.nodes, len(ledger.nodes)):
            groups = ledger.place(node, job["request"])
            if groups is not None:
                places.append((node["name"], groups))
                break
        else:
            ledger.free, ledger.shared = free, shared
            return False
    for task, (node_name, groups) in zip(job["tasks"], places, strict=True):
        task |= {"state": "running", "node": node_name, "gpu_groups": groups}
    job["last_start_offset_seconds"] = rng.choice([-100, -1000])
    return True
