"""A subscription's chain: gap-free, coalesced, bounded; played against a model of the client."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kaiweb.live.frames import TopicSnapshot
from kaiweb.live.subscription import (
    HIDDEN_INTERVAL_S,
    INTERVAL_S,
    MAX_PENDING_KEYS,
    MAX_UNACKED,
    PART_ITEMS,
    Batch,
    Subscription,
)
from kaiweb.live.topics import parse_topic


def anything(_item: dict[str, Any]) -> bool:
    return True


def batch(position: int, family: str = "queues", **items: Any) -> Batch:
    return Batch(position, {"rv": str(position)}, {family: items})


@pytest.fixture
def queues() -> Subscription:
    queue_subscription = Subscription(id="s", topic=parse_topic("queues", None))
    queue_subscription.begin(10, {"a", "b"}, anything, now=0.0)
    return queue_subscription


def test_a_delta_names_its_predecessor_and_carries_whole_items(queues: Subscription) -> None:
    queues.offer(batch(12, a={"name": "a", "priority": 1}))
    assert queues.take(1.0) == {
        "t": "delta", "id": "s", "seq": "12", "prev": "10", "asOf": {"rv": "12"},
        "up": [{"k": "a", "set": {"name": "a", "priority": 1}, "unset": []}], "del": [],
    }  # fmt: skip
    queues.offer(batch(15, b=None))
    second = queues.take(2.0)
    assert second is not None
    assert (second["prev"], second["seq"], second["del"]) == ("12", "15", ["b"])


def test_the_last_state_of_a_key_wins(queues: Subscription) -> None:
    for position, item in ((11, {"v": 1}), (12, None), (13, {"v": 3})):
        queues.offer(batch(position, a=item))
    frame = queues.take(1.0)
    assert frame is not None
    assert (frame["up"], frame["del"]) == ([{"k": "a", "set": {"v": 3}, "unset": []}], [])
    queues.offer(batch(14, a={"v": 4}))
    queues.offer(batch(15, a=None))
    frame = queues.take(2.0)
    assert frame is not None
    assert (frame["up"], frame["del"]) == ([], ["a"])


def test_a_deletion_of_what_the_client_never_had_is_not_sent(queues: Subscription) -> None:
    queues.offer(batch(11, stranger=None))
    assert queues.take(1.0) is None
    assert queues.seq == 10


def test_an_item_that_leaves_the_filter_is_deleted_and_comes_back() -> None:
    queue_subscription = Subscription(
        id="s", topic=parse_topic("workloads", {"state": ["pending"]})
    )
    queue_subscription.begin(0, {"n/w"}, lambda item: item["state"] == "pending", now=0.0)
    sent = []
    for position, state in ((1, "running"), (2, "running"), (3, "pending")):
        queue_subscription.offer(batch(position, "workloads", **{"n/w": {"state": state}}))
        frame = queue_subscription.take(float(position))
        sent.append(frame and (len(frame["up"]), frame["del"]))
    assert sent == [(0, ["n/w"]), None, (1, [])]


def test_after_a_resume_deletions_go_out_even_if_the_client_may_not_have_the_key() -> None:
    queue_subscription = Subscription(id="s", topic=parse_topic("queues", None))
    queue_subscription.begin(5, None, anything, now=0.0)
    queue_subscription.catch_up(batch(9, a={"v": 1}, b=None))
    frame = queue_subscription.take(0.0)
    assert frame is not None
    assert (frame["prev"], frame["seq"], frame["del"], len(frame["up"])) == ("5", "9", ["b"], 1)


def test_what_comes_while_a_snapshot_is_read_waits_and_is_sent_after_it() -> None:
    queue_subscription = Subscription(id="s", topic=parse_topic("queues", None))
    queue_subscription.offer(batch(7, a={"v": "old"}))
    assert queue_subscription.due_at(hidden=False) is None
    queue_subscription.begin(8, {"a"}, anything, now=0.0)
    assert queue_subscription.due_at(hidden=False) is None
    late = Subscription(id="s", topic=parse_topic("queues", None))
    late.offer(batch(9, a={"v": "new"}))
    late.begin(8, {"a"}, anything, now=0.0)
    frame = late.take(0.0)
    assert frame is not None
    assert (frame["prev"], frame["seq"]) == ("8", "9")


def test_a_batch_older_than_the_snapshot_is_ignored(queues: Subscription) -> None:
    queues.offer(batch(9, a={"v": "old"}))
    assert queues.due_at(hidden=False) is None


def test_a_single_key_topic_takes_only_its_key() -> None:
    queue_subscription = Subscription(id="s", topic=parse_topic("queue:a", None))
    queue_subscription.begin(0, {"a"}, anything, now=0.0)
    queue_subscription.offer(batch(1, b={"v": 1}))
    assert queue_subscription.due_at(hidden=False) is None
    queue_subscription.offer(batch(2, a={"v": 1}))
    assert queue_subscription.due_at(hidden=False) is not None


def test_frames_keep_their_distance_and_more_so_in_a_hidden_tab(queues: Subscription) -> None:
    queues.offer(batch(11, a={"v": 1}))
    queues.take(5.0)
    queues.offer(batch(12, a={"v": 2}))
    assert queues.due_at(hidden=False) == 5.0 + INTERVAL_S
    assert queues.due_at(hidden=True) == 5.0 + HIDDEN_INTERVAL_S


def test_a_client_that_does_not_acknowledge_is_overrun_after_64_frames(
    queues: Subscription,
) -> None:
    for number in range(MAX_UNACKED):
        assert not queues.is_overrun()
        queues.offer(batch(11 + number, a={"v": number}))
        queues.take(float(number))
    assert queues.is_overrun()
    queues.acknowledge(11)
    assert not queues.is_overrun()
    queues.slow_down()
    assert queues.interval_s == 2 * INTERVAL_S


def test_too_many_waiting_keys_are_an_overrun_too(queues: Subscription) -> None:
    queues.offer(batch(11, **{f"q{n}": None for n in range(MAX_PENDING_KEYS + 1)}))
    assert queues.is_overrun()


@pytest.mark.parametrize(
    ("items", "sizes"), [(0, [0]), (1, [1]), (2 * PART_ITEMS + 1, [500, 500, 1])]
)
def test_a_snapshot_comes_in_parts_and_an_empty_one_has_one(
    queues: Subscription, items: int, sizes: list[int]
) -> None:
    rows: list[dict[str, Any]] = [{"k": str(number)} for number in range(items)]
    snapshot = TopicSnapshot(queues.topic, "e", 4, {}, anything, rows)
    frames = [
        snapshot.frame(queues, number, snapshot.part(number))
        for number in range(1, snapshot.parts + 1)
    ]
    assert [len(frame["items"]) for frame in frames] == sizes
    assert [(frame["part"], frame["of"]) for frame in frames] == [
        (number, len(sizes)) for number in range(1, len(sizes) + 1)
    ]
    assert [row for frame in frames for row in frame["items"]] == rows


@pytest.mark.parametrize("seed", range(30))
def test_any_story_ends_with_client_and_server_alike(seed: int) -> None:
    """Random changes, snapshots in between them, lost connections with resume: the rows agree at the end."""
    chance = random.Random(seed)
    server: dict[str, dict[str, Any]] = {}
    log: list[str] = []
    client: dict[str, dict[str, Any]] = {}
    client_seq = 0
    queue_subscription = Subscription(id="s", topic=parse_topic("queues", None))
    queue_subscription.begin(0, set(), anything, now=0.0)
    hub_position = 0

    def states(keys: list[str], position: int) -> Batch:
        return batch(
            position, **{key: (dict(server[key]) if key in server else None) for key in keys}
        )

    for step in range(200):
        key = f"q{chance.randrange(6)}"
        if chance.random() < 0.3:
            server.pop(key, None)
        else:
            server[key] = {"v": step}
        log.append(key)
        if chance.random() < 0.4:
            queue_subscription.offer(states(log[hub_position:], len(log)))
            hub_position = len(log)
        if chance.random() < 0.1:  # the connection breaks: resume from what the client has
            queue_subscription = Subscription(id="s", topic=parse_topic("queues", None))
            queue_subscription.begin(client_seq, None, anything, now=0.0)
            queue_subscription.catch_up(states(log[client_seq:], len(log)))
        frame = queue_subscription.take(0.0) if chance.random() < 0.5 else None
        if frame is not None:
            assert frame["prev"] == str(client_seq)
            client_seq = int(frame["seq"])
            for change in frame["up"]:
                client[change["k"]] = change["set"]
            for gone in frame["del"]:
                client.pop(gone, None)
    queue_subscription.offer(states(log[hub_position:], len(log)))
    last = queue_subscription.take(0.0)
    for change in last["up"] if last else []:
        client[change["k"]] = change["set"]
    for gone in last["del"] if last else []:
        client.pop(gone, None)
    assert client == server
