"""What the search for victims tells the metrics, under KAI's names."""

from __future__ import annotations

from scheduler.core.decisions import ActionName
from scheduler.core.options import SearchBudgets
from scheduler.metrics import SchedulerMetrics
from tests.builders import cluster


def value(metrics: SchedulerMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"kai_{name}", labels)


def test_searches_and_scenarios_are_counted() -> None:
    metrics = SchedulerMetrics()
    built = cluster().nodes(1, 2).queue("a", 1).queue("b", 1)
    for number in range(2):
        built.running(f"r{number}", ["n0"], queue="a")
    result = built.pending("want", queue="b").cycle(ActionName.RECLAIM)
    metrics.observe_actions(result.reports)
    reclaim = {"action": "reclaim"}
    local = reclaim | {"generator": "NodeLocalGreedy"}
    assert value(metrics, "podgroups_acted_on_by_action", **reclaim) == 1
    assert value(metrics, "scenarios_simulation_by_action", **reclaim) == 1
    assert value(metrics, "scenarios_filtered_by_action", **reclaim) == 1
    solved = {"result": "solved", "reduced_budget": "false"}
    assert value(metrics, "scenario_search_jobs_total", **reclaim, **solved) == 1
    assert value(metrics, "scenario_search_scenarios_total", **local, state="emitted") == 1
    assert value(metrics, "scenario_search_scenarios_total", **local, state="simulated") == 1
    assert value(metrics, "scenario_search_duration_seconds_count", **local, result="solved") == 1
    assert value(metrics, "scenario_search_action_budget_exhausted_total", **reclaim) is None


def test_refused_scenarios_and_exhausted_time_are_counted_separately() -> None:
    metrics = SchedulerMetrics()
    built = cluster().nodes(1, 3).queue("a", 2).queue("b", 1)
    built.running("gang", ["n0", "n0", "n0"], queue="a").pending("want", queue="b")
    result = built.cycle(ActionName.RECLAIM)
    report = result.reports[0]
    report.search.trials.append(("MultiNodeGang", "validator_rejected", 0.5))
    report.search.trials.append(("MultiNodeGang", "duplicate", 0.0))
    report.search.results["deadline_exhausted", True] = 2
    metrics.observe_actions(result.reports)
    gang = {"action": "reclaim", "generator": "MultiNodeGang"}
    assert (
        value(metrics, "scenario_search_scenarios_total", **gang, state="validator_rejected") == 1
    )
    assert value(metrics, "scenario_search_scenarios_total", **gang, state="duplicate") == 1
    assert (
        value(metrics, "scenario_search_duration_seconds_sum", **gang, result="validator_rejected")
        == 0.5
    )
    assert value(metrics, "scenario_search_action_budget_exhausted_total", action="reclaim") == 1


def test_budgets_are_shown_and_no_limit_is_zero() -> None:
    metrics = SchedulerMetrics()
    metrics.set_budgets(
        SearchBudgets(action_s={ActionName.PREEMPT: 9.0}, max_pod_group_s=float("inf"))
    )
    name = "scenario_search_action_budget_configured_seconds"
    assert value(metrics, name, action="preempt") == 9.0
    assert value(metrics, name, action="reclaim") == 300.0
    assert value(metrics, "scenario_search_job_budget_configured_seconds") == 0.0
    generator = "scenario_search_generator_budget_configured_seconds"
    assert value(metrics, generator, generator="NodeLocalGreedy") == 30.0
    assert value(metrics, generator, generator="default") == 120.0
