"""The division against the worked examples, a plain loop, and the benchmark's shares."""

from __future__ import annotations

import json
import time
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.fairshare.division import DivisionInput, divide_siblings, divide_tree, settle
from tests.scheduler.core.fairshare.plain_division import PlainQueue, divide_plainly
from tests.shared import shared_path


def demand(queues: list[PlainQueue]) -> DivisionInput:
    row = lambda name: np.array([[getattr(q, name) for q in queues]], dtype=float)  # noqa: E731
    return DivisionInput(
        quota=row("quota"),
        limit=row("limit"),
        weight=row("weight"),
        request=row("request"),
        usage=row("usage"),
        priority=np.array([q.priority for q in queues], dtype=np.int64),
        seniority=np.array([q.seniority for q in queues], dtype=np.int64),
    )


def shares(total: float, queues: list[PlainQueue], k_value: float = 1.0) -> list[float]:
    pools = np.array([[total]], dtype=float)
    group = np.zeros(len(queues), dtype=np.int64)
    return divide_siblings(pools, group, demand(queues), k_value)[0].tolist()


def q(quota: float, weight: float, request: float, **more: float) -> PlainQueue:
    return PlainQueue(
        quota=quota, limit=more.pop("limit", inf), weight=weight, request=request, **more
    )


def aged(*queues: PlainQueue) -> list[PlainQueue]:
    for age, queue in enumerate(queues):
        queue.seniority = age
    return list(queues)


EXAMPLES = [
    (8, [q(2, 1, 6), q(2, 3, 6)], 1.0, [3, 5]),
    (11, [q(2, 1, 10), q(2, 4, 10)], 1.0, [3, 8]),
    (11, [q(2, 2, 6), q(2, 2, 6)], 1.0, [6, 5]),
    (12, [q(2, 2, 6, limit=5), q(2, 2, 6)], 1.0, [5, 6]),
    (6, [q(2, 100, 6, priority=1), q(2, 1, 6, priority=2)], 1.0, [2, 4]),
    (4, [q(2, 2, 6, priority=1), q(2, 2, 6, priority=2)], 1.0, [2, 2]),
    (10, [q(3, 2, 8, priority=200), q(2, 1, 8, priority=200), q(2, 1, 8)], 1.0, [5, 3, 2]),
    (10, [q(0, 1, 10), q(0, 1, 2), q(0, 1, 10)], 1.0, [4, 2, 4]),
    (10, [q(0, 1, 10), q(0, 1, 10), q(0, 1, 10)], 1.0, [4, 3, 3]),
    (2, [q(0, 1, 0.5), q(0, 1, 3)], 1.0, [0.5, 1.5]),
    (10, [q(2, 0, 8), q(2, 1, 5)], 1.0, [2, 5]),
    (10, [q(inf, 1, 12), q(4, 1, 6)], 1.0, [10, 4]),
    (1, [q(3, 0, 2)], 1.0, [2]),
    (16, [q(0, 1, 16, usage=0.6), q(0, 1, 16)], 1.0, [5, 11]),
    (16, [q(0, 1, 16, usage=0.6), q(0, 1, 16)], 0.5, [6, 10]),
    (16, [q(0, 1, 16, usage=0.6), q(0, 1, 16)], 0.0, [8, 8]),
    (16, [q(0, 1, 16, usage=0.25), q(0, 1, 16, usage=0.05)], 1.0, [7, 9]),
    (16, [q(0, 1, 16, usage=1.2), q(0, 1, 4)], 1.0, [12, 4]),
    (
        10_000,
        [q(5000, 5000, 7000), q(5000, 5000, 2000), q(5000, 5000, 2000)],
        1.0,
        [6000, 2000, 2000],
    ),
    (
        10_000,
        [q(5000, 5000, 7000), q(5000, 5000, 5000), q(5000, 5000, 2000)],
        1.0,
        [5000, 5000, 2000],
    ),
]


@pytest.mark.parametrize(("total", "queues", "k_value", "expected"), EXAMPLES)
def test_worked_examples(total, queues, k_value, expected) -> None:
    assert shares(total, aged(*queues), k_value) == pytest.approx(expected)


def test_float_noise_does_not_round_a_request_down() -> None:
    request = 0.1 + 0.2
    assert request > 0.6 / 2
    assert shares(0.6, aged(q(0, 1, request), q(0, 1, request)), 0.0) == pytest.approx([0.3, 0.3])


def test_children_divide_the_share_of_their_parent() -> None:
    queues = aged(q(4, 1, 12), q(4, 1, 3), q(3, 1, 10), q(1, 2, 2), q(4, 1, 3))
    parent = np.array([-1, -1, 0, 0, 1])
    share = divide_tree(np.array([12.0]), parent, demand(queues), 1.0)
    assert share[0].tolist() == [9, 3, 7, 2, 3]


def test_a_parent_cycle_is_refused() -> None:
    queues = aged(q(1, 1, 1), q(1, 1, 1))
    with pytest.raises(ValueError, match=r"queues \[0, 1\] have no path to a top queue"):
        divide_tree(np.array([4.0]), np.array([1, 0]), demand(queues), 1.0)


def test_a_negative_k_counts_as_none() -> None:
    queues = aged(q(0, 1, 16, usage=0.6), q(0, 1, 16))
    assert shares(16, queues, -3.0) == [8, 8]


def test_what_was_given_before_counts() -> None:
    queues = aged(q(0, 1, 10), q(0, 1, 10))
    start = np.array([[9.0, 0.0]])
    share, rest = settle(np.array([[8.0]]), np.zeros(2, dtype=np.int64), demand(queues), 0.0, start)
    assert share.tolist() == [[10.0, 7.0]]
    assert rest.tolist() == [[0.0]]


amounts = st.integers(0, 24).map(lambda n: n / 2)
unlimited = st.one_of(amounts, st.just(inf))
plain_queues = st.builds(
    PlainQueue,
    quota=unlimited,
    limit=unlimited,
    weight=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]),
    request=amounts,
    usage=st.sampled_from([0.0, 0.0, 0.25, 0.6, 1.25]),
    priority=st.sampled_from([50, 100, 200]),
)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.lists(plain_queues, min_size=1, max_size=6)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_all_pools_at_once_give_what_a_plain_loop_gives(pools, k_value) -> None:
    queues = [queue for _, members in pools for queue in aged(*members)]
    group = np.array([g for g, (_, members) in enumerate(pools) for _ in members])
    totals = np.array([[float(total) for total, _ in pools]])
    share, rest = settle(totals, group, demand(queues), k_value)
    left = [divide_plainly(float(total), members, k_value) for total, members in pools]
    assert share[0] == pytest.approx([queue.share for queue in queues], abs=1e-6)
    assert rest[0] == pytest.approx(left, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 40), st.lists(plain_queues, min_size=1, max_size=8), st.sampled_from([0.0, 1.0])
)
def test_shares_are_consistent(total, queues, k_value) -> None:
    result = shares(float(total), aged(*queues), k_value)
    quotas = [min(total if q.quota == inf else q.quota, q.requestable) for q in queues]
    for share, queue, quota in zip(result, queues, quotas, strict=True):
        assert share >= quota - 1e-9
        assert share < queue.requestable + 1 or share == pytest.approx(quota)
    assert sum(result) <= max(total, sum(quotas)) + 1e-6


@st.composite
def trees(draw):
    """Queues in order of depth; each one's parent stands before it, or it is a top queue."""
    queues = aged(*draw(st.lists(plain_queues, min_size=1, max_size=10)))
    parents = [draw(st.integers(-1, index - 1)) for index in range(len(queues))]
    return queues, parents


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 40), trees(), st.sampled_from([0.0, 1.0]))
def test_each_level_divides_what_its_parent_got(total, tree, k_value) -> None:
    queues, parents = tree
    result = divide_tree(np.array([float(total)]), np.array(parents), demand(queues), k_value)[0]
    for above in range(-1, len(queues)):
        children = [index for index, parent in enumerate(parents) if parent == above]
        if not children:
            continue
        pool = float(total) if above < 0 else float(result[above])
        mine = [queues[index] for index in children]
        divide_plainly(pool, mine, k_value)
        assert result[children] == pytest.approx([queue.share for queue in mine], abs=1e-6)
        promised = sum(
            min(pool if queue.quota == inf else queue.quota, queue.requestable) for queue in mine
        )
        assert sum(result[children]) <= max(pool, promised) + 1e-6


def bench_demand(workload: dict) -> tuple[DivisionInput, np.ndarray]:
    queues = workload["queues"]
    kinds = ("cpu", "memory", "gpu")
    read = lambda key: np.array([[x[k][key] for x in queues] for k in kinds], dtype=float)  # noqa: E731
    free = lambda values: np.where(values == -1, inf, values)  # noqa: E731
    return DivisionInput(
        quota=free(read("quota")),
        limit=free(read("limit")),
        weight=read("over_quota_weight"),
        request=read("request"),
        usage=read("usage"),
        priority=np.array([x["priority"] for x in queues]),
        seniority=np.array([x["created_rank"] for x in queues]),
    ), np.array([[workload["totals"][k]] for k in kinds], dtype=float)


@pytest.mark.shared
@pytest.mark.parametrize("queues", [100, 1000])
def test_the_benchmark_queues_get_the_shares_kai_gave(queues) -> None:
    workload = _bench_module().fair_share(queues=queues)
    demand, totals = bench_demand(workload)
    share = divide_siblings(totals, np.zeros(queues, dtype=np.int64), demand, workload["k_value"])
    expected = json.loads(
        shared_path("bench", "expected", f"fair_share-queues{queues}.json").read_text()
    )
    names = [queue["name"] for queue in workload["queues"]]
    for row, kind in enumerate(("cpu", "memory", "gpu")):
        assert share[row] == pytest.approx([expected[name][kind] for name in names])


@pytest.mark.shared
@pytest.mark.bench
def test_ten_thousand_siblings_are_divided_in_milliseconds() -> None:
    workload = _bench_module().fair_share(queues=10_000)
    demand, totals = bench_demand(workload)
    group = np.zeros(10_000, dtype=np.int64)
    took = []
    for _ in range(3):
        begin = time.process_time()
        share = divide_siblings(totals, group, demand, workload["k_value"])
        took.append(time.process_time() - begin)
    print(f"10,000 queues: {min(took) * 1000:.1f} ms (KAI 77 ms)")
    assert share.sum(axis=1) == pytest.approx(totals[:, 0])


def _bench_module():
    import importlib.util

    path = shared_path("bench", "workloads.py")
    spec = importlib.util.spec_from_file_location("bench_workloads", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
