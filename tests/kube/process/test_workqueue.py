"""The controllers' queue: no key twice at once, none lost, failures spaced out."""

from __future__ import annotations

import threading

from kube.process.workqueue import WorkQueue, start_workers


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_key_added_several_times_is_queued_once() -> None:
    queue = WorkQueue()
    for _ in range(3):
        queue.add("a")
    assert queue.get(timeout_s=0) == "a"
    assert queue.get(timeout_s=0) is None


def test_a_key_added_while_it_is_processed_is_queued_again_afterwards() -> None:
    queue = WorkQueue()
    queue.add("a")
    assert queue.get(timeout_s=0) == "a"
    queue.add("a")
    assert queue.get(timeout_s=0) is None
    queue.done("a")
    assert queue.get(timeout_s=0) == "a"
    queue.done("a")
    assert len(queue) == 0


def test_pauses_double_up_to_a_minute_and_start_over_when_forgotten() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    assert [queue.retry("a") for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    queue.forget("a")
    assert queue.retry("a") == 1


def test_the_earlier_of_two_times_applies() -> None:
    clock = Clock()
    queue = WorkQueue(clock=clock)
    queue.add_after("a", 10)
    queue.add_after("a", 2)
    queue.add_after("a", 5)
    clock.now = 1.9
    assert queue.get(timeout_s=0) is None
    clock.now = 2.0
    assert queue.get(timeout_s=0) == "a"
    queue.done("a")
    clock.now = 20.0
    assert queue.get(timeout_s=0) is None


def test_workers_survive_an_unexpected_error_and_end_when_closed() -> None:
    queue = WorkQueue(first_s=0.0, max_s=0.0)
    keys: list[str] = []
    finished = threading.Event()

    def work(key: str) -> None:
        keys.append(key)
        if len(keys) == 1:
            raise RuntimeError("unexpected")
        finished.set()

    threads = start_workers(queue, work, 2, "test")
    queue.add("a")
    assert finished.wait(5)
    queue.close()
    for thread in threads:
        thread.join(5)
    assert keys[:2] == ["a", "a"]
    assert not any(thread.is_alive() for thread in threads)
