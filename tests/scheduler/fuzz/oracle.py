"""A slow and obviously right search on tiny clusters: could the one pending pod group be served?

Whole GPUs only, equal pods, no topology: whether pods fit is a count of places. All sets of victims that the
rules allow are tried, without moving anybody. What the search finds the core must find too within a few
cycles; the core may find more, because it also moves pods.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.scheduler.fuzz.cycles import Finding, next_document, play
from tests.scheduler.fuzz.generate import GB, Document, document_of

#: In how many cycles the core has to serve what can be served.
CYCLES = 4
EVICTOR = "ask"


def tiny_document(rng: random.Random, number: int) -> Document:
    """Return two or three small nodes, at most six pods, and one pod group that waits."""
    nodes = [_node(index, rng.choice([1, 2, 2])) for index in range(rng.randint(2, 3))]
    free = {node["name"]: node["gpu"] for node in nodes}
    queues = _queues(rng, sum(free.values()))
    leaves = [queue["name"] for queue in queues if queue["parent"]]
    # Mostly somebody with a right to more waits, while the cluster is full.
    rich = max(queues, key=lambda queue: (queue["parent"] is not None, queue["gpu"]["quota"]))
    own = rich["name"] if rng.random() < 0.7 else rng.choice(leaves)
    evictor = _job(rng, EVICTOR, own, rng.choice([1, 1, 2, 3]))
    pods_left = 6 - len(evictor["tasks"])
    jobs = [evictor]
    for index in range(8):
        job = _job(rng, f"r{index}", rng.choice(leaves), rng.choice([1, 1, 2, 3]))
        if rng.random() < 0.85 and len(job["tasks"]) <= pods_left and _run(rng, job, free):
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
        played = play(current)
        evictor = played.pods_of(EVICTOR)
        minimum = _job_of(document, EVICTOR)["min_available"]
        if sum(pod.held_before for pod in evictor) >= minimum:
            return
        if not victims and cycle == 0 and sum(pod.holds_after for pod in evictor) < minimum:
            yield Finding("free room not used", "the waiting pod group fits without any victim")
            return
        current = next_document(played)
    yield Finding("servable work not served", f"would fit if {victims} went; {CYCLES} cycles")


@dataclass(frozen=True, slots=True)
class Tiny:
    """A tiny cluster in plain numbers."""

    document: Document
    free: dict[str, int]
    held: dict[str, int]
    non_preemptible: dict[str, int]
    queues: dict[str, Any]

    @classmethod
    def of(cls, document: Document) -> Tiny:
        """Read a document."""
        queues = {queue["name"]: queue for queue in document["cluster"]["queues"]}
        tiny = cls(
            document,
            {node["name"]: node["gpu"] for node in document["cluster"]["nodes"]},
            dict.fromkeys(queues, 0),
            dict.fromkeys(queues, 0),
            queues,
        )
        for job in document["jobs"]:
            for task in job["tasks"]:
                if task["state"] == "running":
                    tiny.free[task["node"]] -= _gpus(job)
                    for name in tiny.path(job["queue"]):
                        tiny.held[name] += _gpus(job)
                        tiny.non_preemptible[name] += 0 if job["preemptible"] else _gpus(job)
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
        needed = _gpus(evictor) * evictor["min_available"]
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
            quota, limit = _amount(self.queues[name], "quota"), _amount(self.queues[name], "limit")
            if self.held[name] + needed > limit:
                return False
            if not evictor["preemptible"] and self.non_preemptible[name] + needed > quota:
                return False
        return True

    def _fits(self, evictor: Document, leaving: list[Document]) -> bool:
        free = dict(self.free)
        for task in leaving:
            free[task["node"]] += task["gpus"]
        places = sum(gpus // _gpus(evictor) for gpus in free.values())
        return places >= evictor["min_available"]

    def _reclaim_sets(self, evictor: Document, needed: int) -> Iterator[list[list[Document]]]:
        """Yield what a queue that stays within its quota on every level may take from others."""
        own = self.path(evictor["queue"])
        if any(self.held[name] + needed > _amount(self.queues[name], "quota") for name in own):
            return
        jobs = [job for job in self._victim_jobs() if job["queue"] != evictor["queue"]]
        for taken in _prefixes(jobs):
            losses: dict[str, list[int]] = {}
            for job, chunks in taken:
                other = self._diverging(own, self.path(job["queue"]))
                losses.setdefault(other, []).extend(len(chunk) * _gpus(job) for chunk in chunks)
            if all(self._may_lose(name, sizes) for name, sizes in losses.items()):
                yield [chunk for _, chunks in taken for chunk in chunks]

    def _may_lose(self, queue: str, sizes: list[int]) -> bool:
        """Return whether the queue is above its quota before each chunk, the largest being the last."""
        before_last = self.held[queue] - sum(sizes) + max(sizes, default=0)
        return not sizes or before_last > _amount(self.queues[queue], "quota")

    def _preempt_sets(self, evictor: Document) -> Iterator[list[list[Document]]]:
        """Yield what less important work of the same queue may be taken."""
        jobs = [
            job
            for job in self._victim_jobs()
            if job["queue"] == evictor["queue"] and job["priority"] < evictor["priority"]
        ]
        for taken in _prefixes(jobs):
            yield [chunk for _, chunks in taken for chunk in chunks]

    def _victim_jobs(self) -> list[Document]:
        jobs = [job for job in self.document["jobs"] if job["name"] != EVICTOR]
        return [job for job in jobs if job["preemptible"] and _chunks(job)]

    def _diverging(self, own: list[str], other: list[str]) -> str:
        name = ""
        for left, name in zip(reversed(own), reversed(other), strict=False):
            if left != name:
                break
        return name


_Taken = list[tuple[Document, list[list[Document]]]]


def _prefixes(jobs: list[Document]) -> Iterator[_Taken]:
    """Yield for each combination of jobs the first 0, 1, 2 ... chunks of each."""
    all_chunks = [_chunks(job) for job in jobs]
    for counts in product(*(range(len(chunks) + 1) for chunks in all_chunks)):
        yield [
            (job, chunks[:count])
            for job, chunks, count in zip(jobs, all_chunks, counts, strict=True)
        ]


def _chunks(job: Document) -> list[list[Document]]:
    """Return what a pod group loses step by step: each pod beyond its minimum, then the rest."""
    running = [t | {"gpus": _gpus(job)} for t in job["tasks"] if t["state"] == "running"]
    minimum = job["min_available"]
    surplus = [[task] for task in reversed(running[minimum:])]
    core = running[:minimum]
    return surplus + ([core] if core else [])


def _gpus(job: Document) -> int:
    return int(job["request"]["gpu"])


def _job_of(document: Document, name: str) -> Document:
    return next(job for job in document["jobs"] if job["name"] == name)


def _amount(queue: Document, kind: str) -> float:
    value = float(queue["gpu"][kind])
    return float("inf") if value == -1 else value


def _node(index: int, gpus: int) -> Document:
    node = {"name": f"n{index}", "gpu": gpus, "cpu_millis": 64_000, "memory_bytes": 64 * GB}
    return node | {"max_pods": 110, "gpu_memory_mib": 100, "labels": {}}


def _queues(rng: random.Random, gpus: int) -> list[Document]:
    """Return two top queues with one or two leaves each, whose quotas add up to the cluster at most."""
    queues = []
    left = gpus
    for top in "ab":
        share = rng.randint(0, left)
        left -= share
        queues.append(_queue(rng, top, None, share))
        leaf_left = share
        for number in range(rng.randint(1, 2)):
            quota = rng.randint(0, leaf_left)
            leaf_left -= quota
            queues.append(_queue(rng, f"{top}{number}", top, quota))
    return queues


def _queue(rng: random.Random, name: str, parent: str | None, quota: int) -> Document:
    limit = rng.choice([-1, -1, -1, -1, quota + 1])
    gpu = {"quota": quota, "limit": limit, "over_quota_weight": rng.choice([0, 1, 1, 2])}
    created = -1000 + ord(name[0]) + len(name)
    return {"name": name, "parent": parent, "created_offset_seconds": created, "gpu": gpu}


def _job(rng: random.Random, name: str, queue: str, count: int) -> Document:
    priority = rng.choice([50, 50, 75, 100])
    return {
        "name": name,
        "queue": queue,
        "priority": priority,
        "preemptible": priority < 100,
        "created_offset_seconds": -(ord(name[-1])),
        "request": {"gpu": rng.choice([1, 1, 1, 2]), "cpu_millis": 100, "memory_bytes": GB},
        "min_available": count if rng.random() < 0.7 else rng.randint(0, count),
        "tasks": [{"id": f"{name}-{number}", "state": "pending"} for number in range(count)],
    }


def _run(rng: random.Random, job: Document, free: dict[str, int]) -> bool:
    left, places = dict(free), []
    for _ in job["tasks"]:
        roomy = [name for name, gpus in left.items() if gpus >= _gpus(job)]
        if not roomy:
            return False
        places.append(rng.choice(roomy))
        left[places[-1]] -= _gpus(job)
    free |= left
    for task, node in zip(job["tasks"], places, strict=True):
        task |= {"state": "running", "node": node}
    job["last_start_offset_seconds"] = -100
    return True
