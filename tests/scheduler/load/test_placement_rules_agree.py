"""The scheduler's rule over arrays of nodes and the rule for one pod and one node, which pages explain with, agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube import node_placement
from kube.objects.meta import convert
from kube.objects.node import Taint
from kube.objects.pod import PodSpec
from scheduler.core.cluster.constraints import Expression, Operator, TaskConstraints
from scheduler.core.cluster.inputs import NodeInput
from scheduler.core.cluster.matching import matches_expression, matches_node, tolerates_node
from scheduler.load import terms

KEYS = st.sampled_from(("zone", "size", "gpu"))
VALUES = st.sampled_from(("", "a", "b", "7", "-3", "12", " 5", "1_0", "٣", "9" * 30))
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
OPERATORS = st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
REQUIREMENTS = st.fixed_dictionaries(
    {"key": KEYS, "operator": OPERATORS, "values": st.lists(VALUES, max_size=2)}
)
FIELDS = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.lists(st.sampled_from(("n1", "n2")), min_size=1, max_size=1),
    }
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(REQUIREMENTS, max_size=2),
        "matchFields": st.lists(FIELDS, max_size=1),
    },
)
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
TAINTS = st.fixed_dictionaries(
    {"key": KEYS, "value": st.sampled_from(("", "a")), "effect": st.sampled_from(EFFECTS)}
)
TOLERATIONS = st.fixed_dictionaries(
    {},
    optional={
        "key": st.one_of(st.just(""), KEYS),
        "operator": st.sampled_from(("", "Equal", "Exists", "Other")),
        "value": st.sampled_from(("", "a")),
        "effect": st.sampled_from(("", *EFFECTS)),
    },
)
AFFINITY = st.fixed_dictionaries(
    {
        "nodeAffinity": st.fixed_dictionaries(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
                    {"nodeSelectorTerms": st.lists(TERMS, max_size=2)}
                )
            }
        )
    }
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": LABELS,
        "affinity": AFFINITY,
        "tolerations": st.lists(TOLERATIONS, max_size=2),
    },
)


@settings(max_examples=400, deadline=None)
@given(spec=SPECS, labels=LABELS, taints=st.lists(TAINTS, max_size=2))
def test_both_rules_allow_the_same_nodes(
    spec: dict[str, object], labels: dict[str, str], taints: list[dict[str, str]]
) -> None:
    pod_spec = convert(spec, PodSpec)
    node_taints = tuple(convert(taint, Taint) for taint in taints)
    node = NodeInput(name="n1", labels=labels, taints=terms.taints(node_taints))
    constraints = TaskConstraints(
        node_selector=tuple(pod_spec.node_selector.items()),
        node_affinity=terms.required_node_affinity(pod_spec.affinity),
        tolerations=terms.tolerations(pod_spec.tolerations),
    )
    expected = matches_node(node, constraints) and tolerates_node(node, constraints)
    placement = node_placement.placement_of(pod_spec)
    assert node_placement.allows(placement, "n1", labels, node_taints) == expected


@pytest.mark.parametrize("label", [" 7", "1_0", "٣", "0x7", ""])
def test_a_label_that_go_reads_as_no_number_is_not_above_any(label: str) -> None:
    expression = Expression("size", Operator.GT, ("1",))
    assert not matches_expression({"size": label}, expression)
    assert matches_expression({"size": "7"}, expression)
