"""How Celery finds the scheduler's task."""

from __future__ import annotations

from kaiweb.celery import app
from kaiweb.settings.celery import beat_schedule
from scheduler.loop import services


def test_a_worker_imports_the_tasks_of_the_scheduler_and_of_all_apps() -> None:
    app.loader.import_default_modules()
    assert {"scheduler.loop.tasks", "binder.tasks", "queues.tasks"} <= app.loader.task_modules
    assert services.RUN_CYCLE in app.tasks


def test_beat_and_kicks_name_the_same_task() -> None:
    ticks = beat_schedule(["a100"], tick_s=1.0)
    assert ticks["cycle-a100"]["task"] == services.RUN_CYCLE == "scheduler.tasks.run_cycle"
