"""A node that holds an unreadable pod takes no new pods."""

from __future__ import annotations

from scheduler.core.cluster.inputs import NodeInput
from scheduler.load.build import _close


def test_only_nodes_of_unreadable_pods_are_closed():
    nodes = (NodeInput(name="a"), NodeInput(name="b"))
    closed = _close(nodes, {"b", ""})
    assert [(node.name, node.unschedulable) for node in closed] == [("a", False), ("b", True)]
    assert _close(nodes, {""}) is nodes
