"""Planning Jobs: how many pods, when it ends, what it says."""

from __future__ import annotations

from typing import Any

from kube.objects.meta import convert
from sandbox.controllers.workloads.job import INDEX, Tally, open_tally, plan
from sandbox.controllers.workloads.objects import Job, WorkPod
from sandbox.controllers.workloads.plan import Create, Delete, Patch, Plan
from tests.sandbox.pods import NOW, NOW_TEXT, work_pod


def job(status: dict[str, Any] | None = None, **spec: Any) -> Job:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main"}]}}
    body = {
        "metadata": {"name": "j", "namespace": "ns", "uid": "uid-j"},
        "spec": {"template": template, **spec},
        "status": {"startTime": NOW_TEXT, **(status or {})},
    }
    return convert(body, Job)


def planned(job_object: Job, *pods: WorkPod, tally: Tally | None = None, now: float = NOW) -> Plan:
    return plan(job_object, pods, tally or Tally(), now)


def created(result: Plan) -> list[Create]:
    return [write for write in result.writes if isinstance(write, Create)]


def deleted(result: Plan) -> list[str]:
    return [write.name for write in result.writes if isinstance(write, Delete)]


def status(result: Plan) -> dict[str, Any]:
    (patch,) = [write for write in result.writes if isinstance(write, Patch)]
    new_status: dict[str, Any] = patch.body["status"]
    return new_status


def conditions(result: Plan) -> list[tuple[str, str, str]]:
    return [(item["type"], item["status"], item["reason"]) for item in status(result)["conditions"]]


def done(name: str, phase: str = "Succeeded", **metadata: Any) -> WorkPod:
    return work_pod(name, phase, **metadata)


def test_new_job_gets_as_many_pods_as_may_run_at_once() -> None:
    creations = created(planned(job(parallelism=3, completions=5)))
    assert len(creations) == 3
    metadata = creations[0].body["metadata"]
    assert metadata["generateName"] == "j-"
    assert metadata["labels"]["app"] == "x"
    assert metadata["labels"]["batch.kubernetes.io/job-name"] == "j"
    assert metadata["ownerReferences"][0]["uid"] == "uid-j"


def test_no_more_pods_than_completions_left() -> None:
    pods = [done("a"), done("b"), work_pod("c")]
    assert len(created(planned(job(parallelism=4, completions=4), *pods))) == 1


def test_lowered_parallelism_gives_up_the_idlest_pods() -> None:
    pods = [work_pod("a"), work_pod("b", "Pending", node=""), work_pod("c", "Pending")]
    assert deleted(planned(job(parallelism=1, completions=9), *pods)) == ["b", "c"]


def test_job_announces_success_and_seals_it() -> None:
    result = planned(job(completions=2), done("a"), done("b"))
    assert conditions(result) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert (status(result)["succeeded"], status(result)["completionTime"]) == (2, NOW_TEXT)


def test_success_is_not_sealed_while_pods_still_run() -> None:
    result = planned(job(completions=1, parallelism=2), done("a"), work_pod("b"))
    assert deleted(result) == ["b"]
    assert conditions(result) == [("SuccessCriteriaMet", "True", "CompletionsReached")]


def test_work_queue_job_ends_when_one_succeeded_and_none_runs() -> None:
    assert created(planned(job(parallelism=3), done("a"), work_pod("b"))) == []
    assert conditions(planned(job(parallelism=3), done("a"), done("b")))[-1][0] == "Complete"


def test_finished_pods_count_after_they_are_gone() -> None:
    tally = Tally()
    planned(job(completions=2), done("a"), tally=tally)
    result = planned(job(completions=2), done("b"), tally=tally)
    assert conditions(result)[-1][0] == "Complete"


def test_tally_of_a_known_job_starts_from_its_status() -> None:
    tally = open_tally(job(status={"succeeded": 3, "failed": 1}), [done("a")])
    assert (tally.base_succeeded, tally.base_failed) == (2, 1)


def test_too_many_failures_end_the_job() -> None:
    result = planned(job(backoffLimit=1, completions=3), done("a", "Failed"), done("b", "Failed"))
    assert conditions(result) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    assert created(result) == []


def test_failure_postpones_the_next_pod() -> None:
    tally = Tally()
    result = planned(job(completions=1), done("a", "Failed"), tally=tally)
    assert created(result) == []
    assert result.again_after_s == 10.0
    later = planned(job(completions=1), done("a", "Failed"), tally=tally, now=NOW + 10)
    assert len(created(later)) == 1


def test_deadline_ends_the_job() -> None:
    limited = job(activeDeadlineSeconds=60, completions=1)
    assert planned(limited, work_pod("a"), now=NOW + 20).again_after_s == 40.0
    result = planned(limited, work_pod("a"), now=NOW + 60)
    assert deleted(result) == ["a"]
    assert conditions(result) == [("FailureTarget", "True", "DeadlineExceeded")]


def test_announced_end_stays_the_reason() -> None:
    announced = [{"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}]
    result = planned(job(status={"conditions": announced}, completions=1), done("a"))
    assert conditions(result)[-1] == ("Failed", "True", "DeadlineExceeded")


def test_suspended_job_loses_its_pods_and_says_so() -> None:
    result = planned(job(suspend=True, completions=2), work_pod("a"))
    assert deleted(result) == ["a"]
    assert conditions(result) == [("Suspended", "True", "JobSuspended")]
    assert status(result)["startTime"] is None


def test_indexed_job_fills_the_free_indexes() -> None:
    a_job = job(status={"completedIndexes": "0"}, completions=4, parallelism=4,
               completionMode="Indexed")  # fmt: skip
    result = planned(a_job, work_pod("b", annotations={INDEX: "2"}))
    indexes = [item.body["metadata"]["annotations"][INDEX] for item in created(result)]
    assert indexes == ["1", "3"]
    assert created(result)[0].body["spec"]["hostname"] == "j-1"
    environment = created(result)[0].body["spec"]["containers"][0]["env"]
    assert environment == [{"name": "JOB_COMPLETION_INDEX", "value": "1"}]


def test_completed_indexes_are_written_as_ranges() -> None:
    a_job = job(status={"completedIndexes": "0-1"}, completions=9, completionMode="Indexed")
    result = planned(
        a_job, done("c", annotations={INDEX: "2"}), done("f", annotations={INDEX: "5"})
    )
    assert status(result)["completedIndexes"] == "0-2,5"


def test_finished_job_is_deleted_after_its_time_to_live() -> None:
    sealed = {"type": "Complete", "status": "True", "lastTransitionTime": NOW_TEXT}
    a_job = job(status={"conditions": [sealed]}, ttlSecondsAfterFinished=30)
    assert planned(a_job, now=NOW + 10).again_after_s == 20.0
    assert deleted(planned(a_job, now=NOW + 30)) == ["j"]


def test_unchanged_status_is_not_written_again() -> None:
    first = planned(job(completions=1), work_pod("a"))
    again = planned(job(status=status(first), completions=1), work_pod("a"))
    assert again.writes == []
