"""Inter-pod affinity and anti-affinity: which nodes they allow or prefer, and how releasing pods count."""

from __future__ import annotations

from scheduler.core.cluster.constraints import (
    Expression,
    LabelSelector,
    Operator,
    PodTerm,
    TaskConstraints,
)
from scheduler.core.cluster.inputs import OtherPod, TaskInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.decisions import ActionName, Bind, Nominate
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.neighbours import TermKind, neighbours_of
from tests.builders import ClusterBuilder, cluster, placements, request

ALLOCATE = ActionName.ALLOCATE
HOST, RACK = "host", "rack"


def _app_term(name: str, key: str = HOST, **options: object) -> PodTerm:
    selector = LabelSelector((Expression("app", Operator.IN, (name,)),))
    return PodTerm(topology_key=key, selector=selector, **options)


def _nodes() -> ClusterBuilder:
    builder = cluster()
    for name, rack in (("n0", "r0"), ("n1", "r0"), ("n2", "r1")):
        builder.node(name, 2, labels={HOST: name, RACK: rack})
    return builder


def _labelled(app: str) -> dict[str, object]:
    return {"labels": {"app": app}}


def test_an_anti_affine_gang_spreads_over_domains_and_stops_when_they_run_out() -> None:
    apart = TaskConstraints(pod_anti_affinity=(_app_term("web"),))
    builder = _nodes().pending("web", 3, constraints=apart, task=_labelled("web"))
    assert sorted(placements(builder.cycle(ALLOCATE)).values()) == ["n0", "n1", "n2"]
    too_many = _nodes().pending("web", 4, constraints=apart, task=_labelled("web"))
    assert placements(too_many.cycle(ALLOCATE)) == {}


def test_a_running_pod_repels_pending_pods_that_its_anti_affinity_matches() -> None:
    apart = TaskConstraints(pod_anti_affinity=(_app_term("noisy", RACK),))
    builder = _nodes().running("quiet", ["n0"], constraints=apart)
    builder.pending("noisy", task=_labelled("noisy"))
    result = builder.cycle(ALLOCATE)
    assert placements(result)["noisy-0"] == "n2"
    full = _nodes().running("quiet", ["n0"], constraints=apart).running("rest", ["n2", "n2"])
    full.pending("noisy", task=_labelled("noisy"))
    outcome = full.cycle(ALLOCATE)
    noisy_task = 3  # after one of quiet and two of rest
    reasons = outcome.fit.tasks[noisy_task].reasons()
    assert reasons[NodeReason(NodeReasonKind.EXISTING_ANTI_AFFINITY)] == 2


def test_affinity_places_a_pod_near_a_match_and_pods_that_match_themselves_may_start_alone() -> (
    None
):
    near = TaskConstraints(pod_affinity=(_app_term("db", RACK),))
    builder = _nodes().running("db", ["n2"], task=_labelled("db")).pending("api", constraints=near)
    assert placements(builder.cycle(ALLOCATE))["api-0"] == "n2"
    alone = _nodes().pending("api", constraints=near)
    assert placements(alone.cycle(ALLOCATE)) == {}
    first = _nodes().pending("db", 2, constraints=near, task=_labelled("db"))
    rack_of = {"n0": "r0", "n1": "r0", "n2": "r1"}
    nodes = placements(first.cycle(ALLOCATE)).values()
    assert len(nodes) == 2
    assert len({rack_of[node] for node in nodes}) == 1


def test_other_namespaces_count_only_where_the_term_says_so() -> None:
    stranger = OtherPod(
        task=TaskInput(
            name="s",
            uid="s",
            namespace="far",
            status=TaskStatus.RUNNING,
            node="n0",
            labels={"app": "x"},
            request=request(0),
        ),
        is_foreign=True,
    )
    own_namespace = TaskConstraints(pod_anti_affinity=(_app_term("x", RACK),))
    listed_namespace = TaskConstraints(
        pod_anti_affinity=(_app_term("x", RACK, namespaces=("far",)),)
    )
    team = LabelSelector((Expression("team", Operator.IN, ("blue",)),))
    selected_namespace = TaskConstraints(
        pod_anti_affinity=(_app_term("x", RACK, namespace_selector=team),)
    )
    for constraints, node in (
        (own_namespace, "n0"),
        (listed_namespace, "n2"),
        (selected_namespace, "n2"),
    ):
        builder = _nodes().other(stranger).pending("p", constraints=constraints)
        builder.having(namespaces={"far": {"team": "blue"}})
        assert placements(builder.cycle(ALLOCATE))["p-0"] == node


def test_a_task_is_nominated_and_not_bound_where_the_pod_it_avoids_is_releasing() -> None:
    apart = TaskConstraints(pod_anti_affinity=(_app_term("old", RACK),))
    builder = cluster().node("n", 4, labels={RACK: "r"})
    builder._add("old", [(TaskStatus.RELEASING, "n")], {"task": _labelled("old")})
    builder.pending("new", constraints=apart)
    [decision] = builder.cycle(ALLOCATE).decisions
    assert isinstance(decision, Nominate)
    stays = cluster().node("n", 4, labels={RACK: "r"}).running("old", ["n"], task=_labelled("old"))
    assert stays.pending("new", constraints=apart).cycle(ALLOCATE).decisions == []


def test_eviction_and_rollback_update_the_counters_of_matching_tasks() -> None:
    apart = TaskConstraints(pod_anti_affinity=(_app_term("web"),))
    session = (
        _nodes()
        .running("web", ["n0"], task=_labelled("web"))
        .pending("p", constraints=apart)
        .session()
    )
    web_task, pending_task, web_node = 0, 1, 0
    neighbours = neighbours_of(session)
    pending_class = session.state.tasks.task_class[pending_task]
    [(_, counter)] = neighbours.matching_each(pending_class, TermKind.ANTI_AFFINITY)
    assert counter.near(web_node) == 1
    neighbours.left(web_task, web_node)
    assert counter.near(web_node) == 0
    session.state.journal.rewind(0)
    assert counter.near(web_node) == 1


def test_preferred_affinity_attracts_and_preferred_anti_affinity_repels() -> None:
    config = SchedulerConfig()
    pull = TaskConstraints(preferred_pod_affinity=(_app_term("db", RACK, weight=5),))
    push = TaskConstraints(preferred_pod_anti_affinity=(_app_term("db", RACK, weight=5),))
    for constraints, node in ((pull, "n2"), (push, "n0")):
        builder = _nodes().running("db", ["n2"], task=_labelled("db"))
        builder.pending("p", constraints=constraints)
        [decision] = builder.cycle(ALLOCATE, config=config).decisions
        assert isinstance(decision, Bind)
        assert decision.node == node
