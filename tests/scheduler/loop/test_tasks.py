"""How Celery finds the scheduler's task."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kaiweb.celery import app
from kaiweb.settings.celery import beat_schedule
from scheduler.loop import services, tasks


def test_a_worker_imports_the_tasks_of_the_scheduler_and_of_all_apps() -> None:
    app.loader.import_default_modules()
    assert {"scheduler.loop.tasks", "binder.tasks", "queues.tasks"} <= app.loader.task_modules
    assert services.RUN_CYCLE in app.tasks


def test_beat_and_kicks_name_the_same_task() -> None:
    ticks = beat_schedule(["a100"], tick_s=1.0)
    assert ticks["cycle-a100"]["task"] == services.RUN_CYCLE == "scheduler.tasks.run_cycle"


def test_a_worker_takes_messages_only_while_it_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two workers of a shard one would else take every second tick and do nothing with it."""
    queues = {"shard.a100"}
    consumer = SimpleNamespace(
        task_consumer=SimpleNamespace(consuming_from=lambda queue: queue in queues),
        add_task_queue=queues.add,
        cancel_task_queue=queues.remove,
    )
    answers = iter([False, True, True, False])
    monkeypatch.setattr(services, "is_standby", lambda shard: next(answers))
    consumed = []
    for _ in range(4):
        tasks.follow_lock(consumer, "shard.a100")
        consumed.append("shard.a100" in queues)
    assert consumed == [True, False, False, True]


class Timer:
    """Keeps what is to be called."""

    def __init__(self) -> None:
        self.queues: list[str] = []

    def call_repeatedly(self, _seconds: float, _call: object, args: tuple[object, str]) -> object:
        self.queues.append(args[1])
        return SimpleNamespace(cancel=lambda: self.queues.remove(args[1]))


def test_a_queue_that_is_not_consumed_is_followed_after_a_new_connection() -> None:
    timer, selected = Timer(), {"shard.a100": None, "default": None}
    amqp = SimpleNamespace(queues=SimpleNamespace(consume_from=selected))
    worker = SimpleNamespace(timer=timer, app=SimpleNamespace(amqp=amqp))
    step = tasks.FollowLocks(worker)
    step.start(worker)
    assert timer.queues == ["shard.a100"]
    del selected["shard.a100"]  # another worker schedules
    step.stop(worker)
    assert timer.queues == []
    step.start(worker)
    assert timer.queues == ["shard.a100"]


def test_every_worker_has_the_step_that_follows_locks() -> None:
    app.loader.import_default_modules()
    assert tasks.FollowLocks in app.steps["consumer"]
