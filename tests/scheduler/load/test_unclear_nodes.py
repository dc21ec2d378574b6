"""A node that holds an unreadable pod takes no new pods."""

from __future__ import annotations

from scheduler.core.cluster.inputs import NodeInput
from scheduler.load.nodes import NodeBuilder
from scheduler.settings.params import ShardParams


def test_only_nodes_of_unreadable_pods_are_closed():
    nodes = (NodeInput(name="a"), NodeInput(name="b"))
    builder = NodeBuilder(ShardParams())
    closed = builder.closed(nodes, {"b", ""})
    assert [(node.name, node.unschedulable) for node in closed] == [("a", False), ("b", True)]
    assert builder.closed(nodes, {"b"}) is closed
    assert builder.closed(nodes, {""}) == nodes
