"""Random owner chains: the grouper answers or refuses with a reason, it never crashes and never loops."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queues.grouping.base import Settings
from queues.grouping.engine.reconcile import decide
from queues.grouping.engine.table import TABLE
from queues.grouping.errors import GroupingError, NotReadableError
from queues.grouping.offline.file_cluster import FileCluster
from queues.grouping.offline.manifests import read_manifests
from queues.grouping.offline.report import group_objects
from queues.grouping.offline.synthesis.table import TABLE as MAKERS

KINDS = [(f"{group}/{version}" if group else version, kind) for group, version, kind in TABLE]
KINDS += [("example.test/v1", "Unknown"), ("ray.io/v1", "RayCluster"), ("", "")]
FIELDS = [
    "replicas", "minReplicas", "numOfHosts", "parallelism", "completions", "size", "minAvailable", "spec",
    "template", "metadata", "annotations", "pytorchReplicaSpecs", "tfReplicaSpecs", "mpiReplicaSpecs",
    "xgbReplicaSpecs", "jaxReplicaSpecs", "Worker", "Master", "Launcher", "workerGroupSpecs", "headGroupSpec",
    "replicatedJobs", "name", "leaderWorkerTemplate", "subGroupPolicy", "subGroupSize", "podgroups", "tasks",
    "runPolicy", "schedulingPolicy", "elasticPolicy", "groupName", "startupPolicy", "predictors", "templates",
    "entrypoint", "steps", "services", "components", "jobTemplate", "rayClusterSpec", "trainer", "numNodes",
]  # fmt: skip
KEYS = [
    "kai.scheduler/queue", "kai.scheduler/batch-min-member", "kai.scheduler/segment-size", "priorityClassName",
    "kai.scheduler/preemptibility", "kai.scheduler/preemption-delay", "kai.scheduler/skip-podgrouper",
    "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index", "ray.io/group",
    "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/job-index", "grove.io/podgang",
    "leaderworkerset.sigs.k8s.io/worker-index", "leaderworkerset.sigs.k8s.io/group-index",
    "serving.knative.dev/revision", "kai.scheduler/topology", "kai.scheduler/topology-required-placement",
]  # fmt: skip

TEXTS = ["", "a", "0", "1", "2", "-1", "99999999999", "true", "worker", "5m", "é", "n0", "n1"]
TEXTS += [
    "9" * 5000,
    "\u00b2",
    "\u0663",
    "1_0",
    " 1",
    "a\x00b",
    "1e99999999",
    "1h" * 5000,
    "[" * 10_000,
]
SCALARS: list[Any] = [
    10**400,
    None,
    True,
    -3,
    0,
    1,
    2,
    40,
    2**40,
    1.5,
    float("nan"),
    float("inf"),
    *TEXTS,
]


SOUND = {
    item["kind"]: item["spec"]
    for item in read_manifests(sorted((Path(__file__).parent.parent / "manifests").glob("*.yaml")))
    if "spec" in item
}


class World:
    """Random objects from one seed: references may point anywhere, up, down, at themselves, at nothing."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.kinds = [self.random.choice(KINDS) for _ in range(self.random.randint(0, 6))]

    def pod(self) -> dict[str, Any]:
        spec = {"schedulerName": "kai-scheduler", "priorityClassName": self.random.choice(TEXTS)}
        return {"metadata": self.metadata("p", "up", 0), "spec": spec}

    def owners(self) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": api_version,
                "kind": kind,
                "metadata": self.metadata(f"n{index}", f"u{index}", index + 1),
                "spec": self.spec(kind),
                "status": self.value(0),
            }
            for index, (api_version, kind) in enumerate(self.kinds)
        ]

    def metadata(self, name: str, uid: str, above: int) -> dict[str, Any]:
        return {
            "name": name,
            "namespace": "lab",
            "uid": uid,
            "labels": self.words(),
            "annotations": self.words(),
            "ownerReferences": []
            if above == len(self.kinds) and self.random.random() < 0.9
            else [self.reference(above) for _ in range(self.random.choice([0] + [1] * 12 + [2]))],
        }

    def words(self) -> dict[str, str]:
        chosen = self.random.sample(KEYS, self.random.randint(0, 4))
        return {key: self.random.choice(TEXTS) for key in chosen}

    def reference(self, above: int) -> dict[str, Any]:
        """Point at the next object up, mostly; sometimes anywhere."""
        index = above if self.random.random() < 0.9 else self.random.randint(0, len(self.kinds))
        api_version, kind = self.kinds[index] if index < len(self.kinds) else ("v1", "Gone")
        uid = "other" if self.random.random() < 0.03 else f"u{index}"
        return {"apiVersion": api_version, "kind": kind, "name": f"n{index}", "uid": uid}

    def spec(self, kind: str) -> Any:
        """Return pure noise, or a sound spec of that kind with some of its leaves replaced."""
        sound = SOUND.get(kind)
        return self.value(0) if sound is None or self.random.random() < 0.3 else self.mutated(sound)

    def mutated(self, node: Any) -> Any:
        if self.random.random() < 0.05:
            return self.value(3)
        if isinstance(node, dict):
            return {key: self.mutated(value) for key, value in node.items()}
        return [self.mutated(item) for item in node] if isinstance(node, list) else node

    def value(self, depth: int) -> Any:
        choice = self.random.random()
        if depth > 5 or (depth > 0 and choice < 0.35):
            return self.random.choice(SCALARS)
        if choice < 0.5:
            return [self.value(depth + 1) for _ in range(self.random.randint(0, 2))]
        chosen = self.random.sample(FIELDS, self.random.randint(0, 6))
        return {field: self.value(depth + 1) for field in chosen}


class Moody(FileCluster):
    """A cluster in which one kind may not be read, and which counts what is read."""

    reads = 0

    def get(
        self, api_version: str, kind: str, namespace: str, name: str, *, uid: str = ""
    ) -> dict[str, Any]:
        self.reads += 1
        if kind == "Unknown":
            raise NotReadableError("forbidden")
        return super().get(api_version, kind, namespace, name, uid=uid)


@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**63))
def test_random_owner_chains_never_crash_and_never_loop(seed: int) -> None:
    world = World(seed)
    cluster = Moody()
    for item in world.owners():
        cluster.add(item)
    try:
        decision = decide(world.pod(), cluster, Settings())
    except GroupingError:
        return
    finally:
        # Each owner once on the way up, and what its kind looks at besides; never round and round.
        assert cluster.reads <= 2 * len(world.kinds) + 3
    if decision.body is None:
        assert decision.skip is not None
        return
    assert decision.body["metadata"]["name"] == decision.pod_group
    assert decision.body["spec"].get("minMember", 0) >= 0
    names = [sub["name"] for sub in decision.body["spec"].get("subGroups", [])]
    assert decision.sub_group == "" or decision.sub_group in names


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(MAKERS)), st.integers(0, 2**63))
def test_pods_made_from_random_workloads_never_crash(kind: tuple[str, str], seed: int) -> None:
    versions = {(group, name): version for group, version, name in TABLE if version != "*"}
    group, name = kind
    version = versions.get(kind, "v1")
    workload = {
        "apiVersion": f"{group}/{version}",
        "kind": name,
        "metadata": {"name": "w", "namespace": "lab", "uid": "uw"},
        "spec": World(seed).spec(name),
    }
    group_objects([workload], Settings())
