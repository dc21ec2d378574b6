"""Which function judges the rows of which table; a `generated_` table has its plain one's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.tools.conformance import fair_share_tables, order_table, plugin_tables
from scheduler.tools.conformance.verdict import Mismatch, Verdict

Judge = Callable[[Any], list[Mismatch]]

TABLES: dict[str, Judge] = {
    "flat_division": fair_share_tables.flat_division,
    "hierarchical_fair_share": fair_share_tables.hierarchical_fair_share,
    "queue_order": fair_share_tables.queue_order,
    "can_reclaim": fair_share_tables.can_reclaim_table,
    "victim_filter": fair_share_tables.victim_filter,
    "reclaimable": fair_share_tables.reclaimable,
    "reclaim_strategies": fair_share_tables.reclaim_strategies,
    "capacity_policy": fair_share_tables.capacity_policy,
    "min_runtime": plugin_tables.min_runtime,
    "elastic_job_order": plugin_tables.elastic_job_order,
    "subgroup_order": plugin_tables.subgroup_order,
    "resource_type_score": plugin_tables.resource_type_score,
    "gpu_order": plugin_tables.gpu_order,
    "node_placement": plugin_tables.node_placement,
    "topology_levels": plugin_tables.topology_levels,
    "topology_node_sets": plugin_tables.topology_node_sets,
    "job_order": order_table.job_order,
}


def judge_table(document: dict[str, Any]) -> list[Verdict]:
    """Judge every row of a table; a row that breaks counts as failed and says how."""
    table = str(document["table"])
    judge = TABLES.get(table.removeprefix("generated_"))
    verdicts = []
    for number, case in enumerate(document.get("cases", [])):
        name = f"{table}#{number} {case.get('name', '')}".rstrip()
        verdicts.append(Verdict(case=name, mismatches=tuple(_judge_row(judge, table, case))))
    return verdicts


def _judge_row(judge: Judge | None, table: str, case: dict[str, Any]) -> list[Mismatch]:
    if judge is None:
        table_names = ", ".join(sorted(TABLES))
        return [Mismatch(where="table", expected=f"one of {table_names}", actual=table)]
    try:
        return judge(case)
    except Exception as error:  # a broken row must not hide the others; it is reported as failed
        return [
            Mismatch(where="run", expected="an answer", actual=f"{type(error).__name__}: {error}")
        ]
