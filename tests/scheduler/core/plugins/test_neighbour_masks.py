"""Inter-pod terms asked of all nodes at once say what they say of one node, and what a plain count says."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.cluster.constraints import (
    Expression,
    LabelSelector,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName
from scheduler.core.plugins.predicates.pod_neighbours import PodNeighbours
from scheduler.core.session.neighbours import neighbours_of
from tests.builders import ClusterBuilder, cluster, placements

RACK, ROW = "rack", "row"
APPS = ("web", "db", "log")
NODES = 14


@dataclass(frozen=True)
class Tenant:
    """A running pod: its app, its node, whom it keeps away."""

    app: str
    node: int
    shuns: str


tenants = st.builds(
    Tenant,
    app=st.sampled_from(APPS),
    node=st.integers(0, NODES - 1),
    shuns=st.sampled_from(("", *APPS)),
)


def term(app: str, key: str = RACK) -> PodTerm:
    selector = LabelSelector((Expression("app", Operator.IN, (app,)),))
    return PodTerm(topology_key=key, selector=selector)


def homes_of(size: int, missing: set[int]) -> list[str]:
    """Return the domain of each node, so many nodes to one; some carry no label."""
    return ["" if number in missing else f"d{number // size}" for number in range(NODES)]


def built(racks: list[str], rows: list[str], running: list[Tenant]) -> ClusterBuilder:
    cluster_built = cluster()
    for number, (rack, row) in enumerate(zip(racks, rows, strict=True)):
        labels = {key: home for key, home in ((RACK, rack), (ROW, row)) if home}
        cluster_built.node(f"n{number:02}", 8, labels=labels)
    for number, pod in enumerate(running):
        shuns = TaskConstraints(pod_anti_affinity=(term(pod.shuns),) if pod.shuns else ())
        task = {"labels": {"app": pod.app}}
        cluster_built.running(f"t{number}", [f"n{pod.node:02}"], constraints=shuns, task=task)
    return cluster_built


def plainly(
    levels: list[list[str]], running: list[Tenant], app: str, wants: str, shuns: str
) -> list[bool]:
    """Ask each node about each pod; affinity is wanted at all levels, the rest at the first."""
    matching = [pod for pod in running if pod.app == wants]
    is_first = app == wants and not any(homes[home.node] for homes in levels for home in matching)
    answers = []
    for node in range(NODES):

        def near(homes: list[str], node: int = node) -> list[Tenant]:
            return [pod for pod in running if homes[node] and homes[pod.node] == homes[node]]

        has_wanted = all(
            homes[node] if is_first else any(node.app == wants for node in near(homes))
            for homes in levels
            if wants
        )
        beside = near(levels[0])
        is_shunned = any(term.shuns == app for term in beside)
        answers.append(has_wanted and not is_shunned and all(term.app != shuns for term in beside))
    return answers


@settings(max_examples=150, deadline=None)
@given(
    missing=st.tuples(*[st.sets(st.integers(0, NODES - 1), max_size=4)] * 2),
    running=st.lists(tenants, max_size=8),
    app=st.sampled_from(APPS),
    wants=st.sampled_from(("", *APPS)),
    keys=st.sampled_from(((RACK,), (RACK, ROW))),
    shuns=st.sampled_from(("", *APPS)),
)
def test_all_nodes_at_once_and_one_by_one_agree_with_a_plain_count(
    missing: tuple[set[int], set[int]],
    running: list[Tenant],
    app: str,
    wants: str,
    keys: tuple[str, ...],
    shuns: str,
) -> None:
    racks, rows = homes_of(2, missing[0]), homes_of(5, missing[1])
    constraints = TaskConstraints(
        pod_affinity=tuple(term(wants, key) for key in keys if wants),
        pod_anti_affinity=(term(shuns),) if shuns else (),
    )
    cluster_built = built(racks, rows, running)
    cluster_built.pending("p", constraints=constraints, task={"labels": {"app": app}})
    session = cluster_built.session()
    task = len(running)
    assert session.state.tasks.status[task] == TaskStatus.PENDING
    task_class = session.state.tasks.task_class[task]
    rule = PodNeighbours(session.state, neighbours_of(session))
    expected = plainly([racks, rows][: len(keys)], running, app, wants, shuns)
    assert [rule.passes(task, task_class, node) for node in range(NODES)] == expected
    assert rule.mask(task, task_class).tolist() == expected
    assert rule.concerns(task_class) or all(expected)
    placed = placements(cluster_built.cycle(ActionName.ALLOCATE)).get("p-0")
    allowed = {f"n{node:02}" for node, is_fine in enumerate(expected) if is_fine}
    assert placed in allowed if allowed else placed is None


def test_equal_tasks_with_other_labels_than_the_one_that_is_kept_away_go_where_they_like() -> None:
    racks = homes_of(2, set())
    running = [Tenant("web", 0, "db"), Tenant("db", 2, "")]
    cluster_built = built(racks, racks, running).pending("p", task={"labels": {"app": "web"}})
    assert set(placements(cluster_built.cycle(ActionName.ALLOCATE))) >= {"p-0"}
