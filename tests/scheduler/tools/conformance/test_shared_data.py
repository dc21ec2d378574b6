"""The shared scenarios and tables, all of them, by the product's own runner."""

from __future__ import annotations

import pytest

from scheduler.tools.conformance.runner import run_folder
from tests.shared import shared_path


@pytest.mark.shared
@pytest.mark.parametrize("folder", ["fair_share", "plugin_tables"])
def test_every_row_of_every_table_holds(folder) -> None:
    report = run_folder(shared_path("conformance", folder))
    assert [verdict.as_dict() for verdict in report.failing] == []
    assert len(report.judged) > 0


@pytest.mark.shared
@pytest.mark.timeout(300)
def test_every_scenario_holds_and_every_task_ends_as_observed() -> None:
    report = run_folder(shared_path("conformance", "scenarios"), judge_observations=True)
    assert [verdict.as_dict() for verdict in report.failing] == []
    assert len(report.judged) == 354
