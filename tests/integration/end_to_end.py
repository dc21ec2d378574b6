"""The end-to-end checks, for whichever cluster the `stack` fixture of a folder runs on.

Manifests go in with kubectl; bound pods, pod groups, statuses, exact events and clear refusals come out.
Each folder subclasses `RoadChecks`, so that none of them can leave a check out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.manifests import BAD, HALF, HOPELESS_GANG, ORPHAN, TIGHT_QUEUE, pod_yaml
from tests.integration.stack import Stack, wait_until

MANIFEST = Path(__file__).parent.parent / "manifests" / "example-workloads.yaml"


def _pods(stack: Stack) -> list[dict[str, Any]]:
    return stack.objects("pods", "-n", "kai-test")


def _bound(stack: Stack) -> list[dict[str, Any]]:
    return [pod for pod in _pods(stack) if pod["spec"].get("nodeName")]


def _events(stack: Stack, kind: str, name: str) -> list[tuple[str, str, str]]:
    return _selected_events(stack, f"involvedObject.kind={kind},involvedObject.name={name}")


def _selected_events(stack: Stack, selector: str) -> list[tuple[str, str, str]]:
    events = stack.objects("events", "-n", "kai-test", "--field-selector", selector)
    return [(event["type"], event["reason"], event["message"]) for event in events]


def _pod_groups(stack: Stack) -> dict[str, dict[str, Any]]:
    return {
        group["metadata"]["name"]: group for group in stack.objects("podgroups", "-n", "kai-test")
    }


@pytest.fixture(scope="module")
def workloads(stack: Stack) -> Stack:
    """The stack with the manifests in, and everything that can be bound bound."""
    stack.kubectl("apply", "-f", str(MANIFEST))
    wait_until(
        lambda: len(_bound(stack)) == 8,
        what="eight bound pods (solo, four of quartet, three of answers)",
        timeout_s=40,
        stack=stack,
    )
    return stack


class EndToEndChecks:
    """What must hold on every cluster."""

    def test_the_pods_run_and_carry_what_the_binder_writes(self, workloads: Stack):
        wait_until(
            lambda: all(pod["status"].get("phase") == "Running" for pod in _bound(workloads)),
            what="running pods",
            stack=workloads,
        )
        solo = next(pod for pod in _pods(workloads) if pod["metadata"]["name"] == "solo")
        assert solo["spec"]["nodeName"] == "gpu-lab-worker"
        assert solo["metadata"]["annotations"]["received-resource-type"] == "Regular"
        bound = wait_until(
            lambda: [
                c
                for c in workloads.objects("pod", "solo", "-n", "kai-test")[0]["status"][
                    "conditions"
                ]
                if c["type"] == "PodBound"
            ],
            what="the condition PodBound",
        )
        assert (bound[0]["status"], bound[0]["reason"], bound[0]["message"]) == (
            "True",
            "Bound",
            "Pod bound successfully to node gpu-lab-worker",
        )

    def test_events_of_a_bound_pod_read_as_in_kai(self, workloads: Stack):
        expected = {
            (
                "Normal",
                "Scheduled",
                "Successfully assigned pod kai-test/solo to node gpu-lab-worker at node-pool default",
            ),
            ("Normal", "Bound", "Pod bound successfully to node gpu-lab-worker"),
        }
        wait_until(
            lambda: expected <= set(_events(workloads, "Pod", "solo")),
            what=f"{expected} among {_events(workloads, 'Pod', 'solo')}",
        )

    def test_a_non_preemptible_pod_over_quota_says_why(self, workloads: Stack):
        text = (
            "NonPreemptibleOverQuota: Non-preemptible workload is over quota. Workload requested 1 GPUs, "
            "but default-queue quota is 0 GPUs, while 0 GPUs are already allocated for non-preemptible "
            "pods. Use a preemptible workload to go over quota."
        )
        wait_until(
            lambda: any(text in message for _, _, message in _events(workloads, "Pod", "greedy")),
            what=f"the reason on pod greedy among {_events(workloads, 'Pod', 'greedy')}",
        )
        greedy = workloads.objects("pod", "greedy", "-n", "kai-test")[0]
        assert "nodeName" not in greedy["spec"]
        scheduled = next(c for c in greedy["status"]["conditions"] if c["type"] == "PodScheduled")
        assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
        group = next(
            group for name, group in _pod_groups(workloads).items() if name.startswith("pg-greedy-")
        )
        condition = group["status"]["schedulingConditions"][-1]
        assert condition["type"] == "UnschedulableOnNodePool"
        assert condition["reasons"][0]["reason"] == "NonPreemptibleOverQuota"

    def test_pod_groups_have_the_right_name_minimum_class_and_queue(self, workloads: Stack):
        groups = _pod_groups(workloads)
        job = workloads.objects("job", "quartet", "-n", "kai-test")[0]
        gang = groups[f"pg-quartet-{job['metadata']['uid']}"]["spec"]
        assert (gang["minMember"], gang["priorityClassName"], gang["queue"]) == (
            4,
            "train",
            "vision",
        )
        pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in _pods(workloads)}
        solo = groups[f"pg-solo-{pods['solo']}"]["spec"]
        assert (solo["minMember"], solo["priorityClassName"], solo["queue"]) == (
            1,
            "train",
            "vision",
        )
        answers = [name for name in pods if name.startswith("answers-")]
        assert len(answers) == 3
        for name in answers:
            spec = groups[f"pg-{name}-{pods[name]}"]["spec"]
            assert (spec["minMember"], spec["priorityClassName"], spec["queue"]) == (
                1,
                "inference",
                "speech",
            )

    def test_queue_status_follows_the_pods_up_the_tree(self, workloads: Stack):
        def allocated(name: str) -> str:
            status = workloads.objects("queue", name)[0].get("status") or {}
            return str((status.get("allocated") or {}).get("nvidia.com/gpu"))

        wait_until(
            lambda: (
                (allocated("vision"), allocated("speech"), allocated("lab")) == ("9", "3", "12")
            ),
            what="allocated 9, 3 and 12 GPUs",
            stack=workloads,
        )
        assert set(workloads.objects("queue", "lab")[0]["status"]["childQueues"]) == {
            "vision",
            "speech",
        }

    @pytest.mark.parametrize("case", BAD)
    def test_bad_objects_are_refused_with_their_reason(self, workloads: Stack, case: str):
        manifest, text = BAD[case]
        answer = workloads.kubectl("apply", "-f", "-", stdin=manifest, check=False)
        assert text in answer
        assert "created" not in answer

    def test_hopeless_work_gets_a_reason_and_others_go_on(self, workloads: Stack):
        workloads.kubectl("apply", "-f", "-", stdin=ORPHAN, check=False)
        workloads.kubectl("apply", "-f", "-", stdin=HOPELESS_GANG)
        for name, queue, gpus in (
            ("no-queue", "not-there", 1),
            ("orphaned", "lost", 1),
            ("too-big", "speech", 64),
            ("fine", "speech", 1),
        ):
            workloads.kubectl("apply", "-f", "-", stdin=pod_yaml(name, queue=queue, gpus=gpus))
        wait_until(
            lambda: "fine" in {pod["metadata"]["name"] for pod in _bound(workloads)},
            what="the healthy pod beside the hopeless ones",
            stack=workloads,
        )

        def reason_of(kind: str, prefix: str) -> str:
            for name, group in _pod_groups(workloads).items():
                if name.startswith(prefix):
                    events = _events(workloads, kind, name)
                    conditions = (group.get("status") or {}).get("schedulingConditions") or []
                    return " ".join(e[2] for e in events) + str(conditions)
            return ""

        for prefix, text in (
            ("pg-no-queue-", "Queue 'not-there' does not exist"),
            ("pg-orphaned-", "Queue 'lost' does not exist"),
            ("pg-too-big-", "requires GPU: 64"),
            ("pg-impossible-", "Waiting for 500 pods, currently 2 exist"),
        ):
            wait_until(
                lambda prefix=prefix, text=text: text in reason_of("PodGroup", prefix),
                what=f"{text!r} on {prefix}: {reason_of('PodGroup', prefix)}",
            )

    def test_two_halves_share_one_device(self, workloads: Stack):
        halves = ("half-a", "half-b")
        for name in halves:
            workloads.kubectl("apply", "-f", "-", stdin=HALF.format(name=name))
        wait_until(
            lambda: set(halves) <= {pod["metadata"]["name"] for pod in _bound(workloads)},
            what="two bound pods of half a GPU",
            timeout_s=60,
            stack=workloads,
        )
        pods = [pod for pod in _pods(workloads) if pod["metadata"]["name"] in halves]
        assert [pod["metadata"]["labels"]["runai-gpu-group"] for pod in pods] == [
            pods[0]["metadata"]["labels"]["runai-gpu-group"]
        ] * 2
        assert {pod["metadata"]["annotations"]["received-resource-type"] for pod in pods} == {
            "Fraction"
        }
        group = pods[0]["metadata"]["labels"]["runai-gpu-group"]
        (holder,) = workloads.objects(
            "pods", "-n", "kai-resource-reservation", "-l", f"runai-gpu-group={group}"
        )
        assert holder["spec"]["nodeName"] == pods[0]["spec"]["nodeName"]
        device = holder["metadata"]["annotations"]["run.ai/reserve_for_gpu_index"]
        for pod in pods:
            prefix = pod["metadata"]["annotations"]["runai/shared-gpu-configmap"]
            data = workloads.objects("configmap", f"{prefix}-0", "-n", "kai-test")[0]["data"]
            assert (data["NVIDIA_VISIBLE_DEVICES"], data["GPU_PORTION"]) == (device, "0.50")

    def test_a_more_important_pod_takes_the_place_of_another(self, workloads: Stack):
        workloads.kubectl("apply", "-f", "-", stdin=TIGHT_QUEUE)
        workloads.kubectl("apply", "-f", "-", stdin=pod_yaml("humble", queue="tight", rank="train"))
        wait_until(
            lambda: "humble" in {pod["metadata"]["name"] for pod in _bound(workloads)},
            what="the bound pod that will have to go",
            stack=workloads,
        )
        workloads.kubectl(
            "apply", "-f", "-", stdin=pod_yaml("proud", queue="tight", rank="build-preemptible")
        )
        wait_until(
            lambda: "proud" in {pod["metadata"]["name"] for pod in _bound(workloads)},
            what="the more important pod on a node",
            timeout_s=60,
            stack=workloads,
        )
        # What leaves no longer counts against the limit, so the two may meet while one of them says goodbye.
        wait_until(
            lambda: "humble" not in {pod["metadata"]["name"] for pod in _pods(workloads)},
            what="the end of the evicted pod",
            stack=workloads,
        )
        (group,) = (name for name in _pod_groups(workloads) if name.startswith("pg-proud-"))
        told = wait_until(
            lambda: _selected_events(workloads, "reason=Evict"), what="the event Evict"
        )
        assert [text for _, _, text in told] == [
            f"Pod kai-test/humble was preempted by higher priority workload kai-test/{group}"
        ]

    def test_the_checker_finds_no_device_given_twice(self, workloads: Stack):
        checked = workloads.kaiweb("check_cluster")
        assert checked.returncode == 0, checked.stdout + checked.stderr

    def test_a_second_start_finds_the_old_state_and_goes_on(self, workloads: Stack):
        def places() -> dict[str, str]:
            return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in _bound(workloads)}

        before = places()
        workloads.stop()
        workloads.start()
        assert places() == before
        workloads.kubectl("apply", "-f", "-", stdin=pod_yaml("late", queue="speech"))
        wait_until(
            lambda: "late" in {pod["metadata"]["name"] for pod in _bound(workloads)},
            what="a pod bound after the second start",
            stack=workloads,
        )
        assert before.items() <= places().items()
