"""Manifests of every kind, grouped offline by the rules of the controller: what each file's header promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from queues.grouping.base import Settings
from queues.grouping.offline.manifests import read_manifests
from queues.grouping.offline.report import GroupReport, group_objects

MANIFESTS = Path(__file__).parents[2] / "manifests"


def grouped(file: str, **settings: Any) -> GroupReport:
    return group_objects(read_manifests([MANIFESTS / file]), Settings(**settings))


def specs(report: GroupReport) -> dict[str, dict[str, Any]]:
    return {group["metadata"]["name"]: group["spec"] for group in report.pod_groups}


def owners(report: GroupReport) -> dict[str, str]:
    owner_of = {}
    for group in report.pod_groups:
        (owner,) = group["metadata"]["ownerReferences"]
        owner_of[group["metadata"]["name"]] = f"{owner['kind']}/{owner['name']}"
    return owner_of


def sub_groups(spec: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Return (name, parent, minimum), a parent's minimum negated."""
    return [
        (
            sub["name"],
            sub.get("parent", ""),
            -sub["minSubGroup"] if "minSubGroup" in sub else sub["minMember"],
        )
        for sub in spec.get("subGroups", [])
    ]


def sub_groups_of_pods(report: GroupReport, prefix: str) -> list[str]:
    """Return the subgroup of each pod whose name begins with a prefix."""
    return [
        result.sub_group for pod, result in report.pods.items() if pod.startswith(f"lab/{prefix}")
    ]


def test_plain_pods_own_their_groups() -> None:
    report = grouped("pods.yaml")
    assert specs(report) == {
        "pg-cpu-u-cpu": {"queue": "optics", "priorityClassName": "train", "minMember": 1},
        "pg-gpu-u-gpu": {"queue": "optics", "priorityClassName": "train", "minMember": 1},
        "pg-nowhere-u-nowhere": {
            "queue": "default-queue",
            "priorityClassName": "train",
            "minMember": 1,
        },
        "pg-old-project-u-old": {"queue": "atlas", "priorityClassName": "train", "minMember": 1},
        "pg-old-project-pool-u-oldpool": {
            "queue": "atlas-a100",
            "priorityClassName": "train",
            "minMember": 1,
        },
        "pg-desk-u-desk": {"queue": "optics", "priorityClassName": "build", "minMember": 1},
        "pg-soft-u-soft": {
            "queue": "optics",
            "priorityClassName": "build",
            "minMember": 1,
            "preemptibility": "preemptible",
        },
        "pg-odd-u-odd": {"queue": "optics", "priorityClassName": "train", "minMember": 1},
    }
    assert report.pods["lab/cpu"].pod_group == "pg-cpu-u-cpu"
    first, *_, last = report.pod_groups
    assert first["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "cpu", "uid": "u-cpu"}
    ]
    assert yaml.safe_load(first["metadata"]["annotations"]["kai.scheduler/top-owner-metadata"]) == {
        "name": "cpu",
        "uid": "u-cpu",
        "group": "",
        "version": "v1",
        "kind": "Pod",
    }
    assert first["metadata"]["labels"] == {"kai.scheduler/queue": "optics"}
    assert last["metadata"]["labels"]["user"] == "ada"
    assert last["metadata"]["annotations"]["user"] == "ada"


def test_the_node_pool_label_of_a_pod_reaches_its_group() -> None:
    report = grouped("pods.yaml")
    labels = {g["metadata"]["name"]: g["metadata"]["labels"] for g in report.pod_groups}
    assert labels["pg-old-project-pool-u-oldpool"]["kai.scheduler/node-pool"] == "a100"
    assert "kai.scheduler/node-pool" not in labels["pg-old-project-u-old"]


def test_pods_that_are_not_ours_to_group_are_left_alone() -> None:
    report = grouped("left-alone.yaml")
    assert report.pod_groups == ()
    results = {name: (r.pod_group, r.sub_group, r.skipped) for name, r in report.pods.items()}
    job_pod = next(name for name in results if name.startswith("lab/side-"))
    assert results == {
        "lab/foreign": ("", "", "another scheduler places this pod"),
        "lab/skipped": ("", "", "annotation kai.scheduler/skip-podgrouper"),
        "lab/grouped": (
            "own-group",
            "left",
            "a pod without owners that already names its pod group",
        ),
        job_pod: (
            "own-group",
            "right",
            "an owner carries annotation kai.scheduler/skip-podgrouper",
        ),
    }


def test_batch_and_built_in_workloads() -> None:
    report = grouped("batch.yaml")
    by_name = specs(report)
    assert by_name["pg-loose-u-loose"]["minMember"] == 1
    assert by_name["pg-gang-u-gang"] == {
        "queue": "optics",
        "priorityClassName": "train",
        "minMember": 4,
        "preemptionDelay": "5m0s",
        "stalenessGracePeriod": "-1s",
        "topologyConstraint": {
            "topology": "hall",
            "requiredTopologyLevel": "rack",
            "preferredTopologyLevel": "kubernetes.io/hostname",
        },
    }
    assert by_name["pg-shard-u-shard"] == {
        "queue": "web",
        "priorityClassName": "train",
        "minMember": 1,
    }
    assert by_name["pg-copy-u-copy"] == {
        "queue": "web",
        "priorityClassName": "train",
        "minMember": 1,
    }
    (wrong,) = [r for name, r in report.pods.items() if name.startswith("lab/wrong-")]
    assert wrong.error.startswith("invalid min-member annotation value: ")
    assert wrong.pod_group == ""


def test_each_cron_job_run_is_a_group_and_its_gang_annotation_is_not_read() -> None:
    report = grouped("batch.yaml")
    (name,) = [n for n in specs(report) if n.startswith("pg-hourly")]
    assert specs(report)[name] == {"queue": "optics", "priorityClassName": "train", "minMember": 1}
    assert owners(report)[name] == "Job/hourly-1"


def test_each_pod_of_a_deployment_is_an_inference_group_of_its_own() -> None:
    report = grouped("batch.yaml")
    names = [n for n in specs(report) if n.startswith("pg-rank-")]
    assert len(names) == 2
    for name in names:
        assert specs(report)[name] == {
            "queue": "web",
            "priorityClassName": "inference",
            "minMember": 1,
        }
        assert owners(report)[name].startswith("Pod/rank-")


def test_durations_without_unit_and_negative_delays_are_ignored() -> None:
    by_name = specs(grouped("delays-ignored.yaml"))
    assert by_name["pg-unitless-u-unitless"]["stalenessGracePeriod"] == "10m0s"
    assert "preemptionDelay" not in by_name["pg-unitless-u-unitless"]
    assert "preemptionDelay" not in by_name["pg-negative-u-negative"]


def test_kubeflow_sizes_and_subgroups() -> None:
    report = grouped("kubeflow.yaml")
    sizes = {name: (s["minMember"], sub_groups(s)) for name, s in specs(report).items()}
    assert sizes == {
        "pg-fixed-u-fixed": (4, [("master", "", 1), ("worker", "", 3)]),
        "pg-elastic-u-elastic": (2, [("worker", "", 2)]),
        "pg-floor-u-floor": (3, [("master", "", 1), ("worker", "", 2)]),
        "pg-cut-u-cut": (
            6,
            [
                ("master", "", 1),
                ("worker", "", -3),
                ("worker-0", "worker", 2),
                ("worker-1", "worker", 2),
                ("worker-2", "worker", 1),
            ],
        ),
        "pg-grid-u-grid": (3, []),
        "pg-trees-u-trees": (3, []),
        "pg-flax-u-flax": (2, []),
        "pg-ring-u-ring": (2, []),
        "pg-ring-one-u-ring-one": (3, []),
        "pg-paddle-u-paddle": (4, []),
        "pg-book-u-book": (1, []),
    }
    assert specs(report)["pg-book-u-book"]["priorityClassName"] == "build"
    assert sub_groups_of_pods(report, "fixed-") == ["master", "worker", "worker", "worker"]
    assert sub_groups_of_pods(report, "cut-") == [
        "master",
        "worker-0",
        "worker-0",
        "worker-1",
        "worker-1",
        "worker-2",
    ]


def test_segments_carry_the_workers_topology() -> None:
    subs = specs(grouped("kubeflow.yaml"))["pg-cut-u-cut"]["subGroups"]
    rack = {"topology": "hall", "requiredTopologyLevel": "rack"}
    assert [sub.get("topologyConstraint") for sub in subs] == [None, None, rack, rack, rack]


def test_a_delayed_launcher_counts_once_it_exists() -> None:
    report = grouped("mpi-launcher.yaml")
    assert specs(report)["pg-ring-u-ring"]["minMember"] == 3


def test_ray_groups_head_and_workers() -> None:
    report = grouped("ray.yaml")
    by_name = specs(report)
    assert by_name["pg-duo-u-duo"]["minMember"] == 6
    assert sub_groups(by_name["pg-duo-u-duo"]) == [
        ("headgroup", "", 1),
        ("small", "", 1),
        ("multi", "", 4),
    ]
    assert sub_groups_of_pods(report, "duo-") == ["headgroup", *["small"] * 3, *["multi"] * 4]
    sweep = by_name["pg-sweep-u-sweep"]
    assert (sweep["minMember"], sweep["priorityClassName"]) == (3, "vip")
    assert owners(report)["pg-sweep-u-sweep"] == "RayJob/sweep"
    assert by_name["pg-answer-u-answer"]["minMember"] == 2


def test_a_ray_pod_that_comes_before_its_clusters_name_is_an_error() -> None:
    report = grouped("ray-too-early.yaml")
    assert report.pods["lab/sweep-head"].error == (
        "failed to extract rayClusterName for lab/sweep of kind RayJob. Please make sure that the "
        "ray-operator is up and a rayCluster child-object has been created"
    )
    assert report.pod_groups == ()


def test_job_sets_count_their_jobs() -> None:
    report = grouped("sets.yaml")
    whole = specs(report)["pg-whole-u-whole"]
    assert "minMember" not in whole
    assert whole["minSubGroup"] == 2
    assert sub_groups(whole) == [
        ("driver", "", -1),
        ("driver-replica-0", "driver", 1),
        ("workers", "", -2),
        ("workers-replica-0", "workers", 4),
        ("workers-replica-1", "workers", 4),
    ]
    ordered = specs(report)["pg-ordered-u-ordered"]
    assert ordered["minSubGroup"] == 1
    assert sub_groups(ordered)[1::2] == [  # each after its parent
        ("first-replica-0", "first", 2),
        ("second-replica-0", "second", 3),
    ]
    assert ordered["subGroups"][1]["topologyConstraint"] == {
        "topology": "hall",
        "preferredTopologyLevel": "rack",
    }
    assert sub_groups_of_pods(report, "whole-") == [
        "driver-replica-0",
        *["workers-replica-0"] * 4,
        *["workers-replica-1"] * 4,
    ]


def test_leader_worker_sets_make_a_group_per_replica() -> None:
    report = grouped("sets.yaml")
    for index in (0, 1):
        spec = specs(report)[f"pg-serve-u-serve-group-{index}"]
        assert (spec["minMember"], sub_groups(spec)) == (4, [("leader", "", 1), ("workers", "", 3)])
    cut = specs(report)["pg-cut-u-cutset-group-0"]
    assert (cut["minMember"], sub_groups(cut)) == (
        5,
        [
            ("segment-0", "", -2),
            ("leader", "segment-0", 1),
            ("workers", "segment-0", 2),
            ("segment-1", "", 2),
        ],
    )
    rack = {"topology": "hall", "requiredTopologyLevel": "rack"}
    assert [sub.get("topologyConstraint") for sub in cut["subGroups"]] == [rack, None, None, rack]
    assert sub_groups_of_pods(report, "cut-") == [
        "leader",
        "workers",
        "workers",
        "segment-1",
        "segment-1",
    ]


def test_a_knative_revision_is_the_gang() -> None:
    report = grouped("serving.yaml")
    (name,) = [n for n in specs(report) if n.startswith("pg-greet-00001-")]
    assert specs(report)[name] == {"queue": "web", "priorityClassName": "inference", "minMember": 2}
    assert owners(report)[name] == "Revision/greet-00001"
    single = grouped("serving.yaml", knative_gang=False)
    names = [n for n in specs(single) if n.startswith("pg-greet-")]
    assert len(names) == 2
    assert {specs(single)[n]["minMember"] for n in names} == {1}


def test_owners_that_only_launch_others_are_not_grouped_but_their_labels_count() -> None:
    report = grouped("serving.yaml")
    steps = [n for n in specs(report) if n.startswith("pg-steps-nap-")]
    assert len(steps) == 2
    assert {specs(report)[n]["queue"] for n in steps} == {"bio"}
    assert {owners(report)[n].partition("/")[0] for n in steps} == {"Pod"}
    (decode,) = [n for n in specs(report) if n.startswith("pg-graph-decode-")]
    assert specs(report)[decode] == {
        "queue": "web",
        "priorityClassName": "inference",
        "minMember": 1,
    }
    (wrapped,) = [n for n in specs(report) if n.startswith("pg-wrapped-")]
    assert specs(report)[wrapped]["queue"] == "optics"
    assert sub_groups(specs(report)[wrapped]) == [("master", "", 1), ("worker", "", 2)]


def test_spark_driver_and_executors_share_a_group() -> None:
    report = grouped("serving.yaml")
    assert specs(report)["spark-77aa"] == {
        "queue": "bio",
        "priorityClassName": "train",
        "minMember": 1,
    }
    assert owners(report)["spark-77aa"] == "Pod/count-driver"
    assert report.pods["lab/count-exec-1"].pod_group == "spark-77aa"
    (spark,) = [g for g in report.pod_groups if g["metadata"]["name"] == "spark-77aa"]
    assert list(spark["metadata"]["annotations"]) == ["kai.scheduler/top-owner-metadata"]


def test_kinds_beyond_kai() -> None:
    report = grouped("serving.yaml")
    by_name = specs(report)
    assert by_name["pg-sparks-u-sparks"] == {
        "queue": "bio",
        "priorityClassName": "build",
        "minMember": 1,
    }
    assert by_name["pg-volcano-u-volcano"] == {
        "queue": "bio",
        "priorityClassName": "train",
        "minMember": 3,
    }
    assert len([n for n in by_name if n.startswith("pg-kserve-predictor-")]) == 2


def test_kinds_on_the_base_rules_or_with_a_small_rule_of_their_own() -> None:
    report = grouped("others.yaml")
    by_name = specs(report)
    assert {
        name: spec["minMember"]
        for name, spec in by_name.items()
        if not name.startswith("pg-rj") and "minMember" in spec
    } == {
        "pg-lint-u-lint": 1,
        "pg-pipe-u-pipe": 1,
        "pg-vm-u-vm": 1,
        "pg-ide-u-ide": 1,
        "pg-score-u-score": 1,
        "pg-aml-u-aml": 3,
        "pg-spot-u-spot": 1,
        "pg-gadget-u-gadget": 1,
    }
    assert by_name["pg-spot-u-spot"]["priorityClassName"] == "inference"
    assert by_name["pg-rj-0-u-rj"]["minMember"] == 1
    (trained,) = [spec for name, spec in by_name.items() if name.startswith("pg-trained-")]
    assert (trained["queue"], sub_groups(trained)) == (
        "optics",
        [("node", "", -1), ("node-replica-0", "node", 3)],
    )


def test_grove_follows_the_pod_gang() -> None:
    report = grouped("grove.yaml")
    assert owners(report) == {"pg-llm-0-u-llm-0": "PodGang/llm-0"}
    spec = specs(report)["pg-llm-0-u-llm-0"]
    assert (spec["queue"], spec["minMember"]) == ("web", 3)
    assert spec["topologyConstraint"] == {"topology": "hall", "requiredTopologyLevel": "block"}
    assert sub_groups(spec) == [("both", "", -2), ("prefill", "both", 1), ("decode", "both", 2)]
    assert spec["subGroups"][0]["topologyConstraint"] == {
        "topology": "hall",
        "requiredTopologyLevel": "rack",
    }
    assert sub_groups_of_pods(report, "llm-0-") == ["prefill", "decode", "decode"]


def test_a_karta_describes_an_unknown_kind() -> None:
    report = grouped("karta.yaml")
    assert owners(report) == {"pg-u-sudoku-solver": "Solver/sudoku"}
    spec = specs(report)["pg-u-sudoku-solver"]
    assert spec["minSubGroup"] == 2
    assert "minMember" not in spec
    assert sub_groups(spec) == [("lead", "", 1), ("helper", "", 3)]
    assert sub_groups_of_pods(report, "sudoku-") == ["lead", "helper", "helper", "helper"]
    assert list(specs(grouped("karta.yaml", karta_fallback=False))) == ["pg-sudoku-u-sudoku"]


def test_two_fitting_kartas_mean_the_base_rules() -> None:
    objects = read_manifests([MANIFESTS / "karta.yaml"])
    twin = {**objects[0], "metadata": {**objects[0]["metadata"], "name": "twin"}}
    report = group_objects([*objects, twin], Settings())
    assert list(specs(report)) == ["pg-sudoku-u-sudoku"]


def test_defaults_per_kind() -> None:
    report = grouped("kind-defaults.yaml")
    by_name = specs(report)
    assert by_name["pg-j-u-j"]["priorityClassName"] == "build-preemptible"
    assert by_name["pg-s-u-s"]["priorityClassName"] == "train"
    (deployment,) = [spec for name, spec in by_name.items() if name.startswith("pg-d-")]
    assert (deployment["priorityClassName"], deployment["preemptibility"]) == (
        "train",
        "preemptible",
    )
