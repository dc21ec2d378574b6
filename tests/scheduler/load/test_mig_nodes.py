"""Which nodes are MIG nodes."""

from __future__ import annotations

import pytest

from kube.resources import NODES
from scheduler.load.build import SnapshotBuilder
from scheduler.settings.params import ShardParams
from tests.scheduler.load.objects import NOW, Cluster, node


@pytest.mark.parametrize(
    ("label", "slices", "is_mig"),
    [
        (None, "7", True),
        (None, "0", False),
        ("true", None, True),
        ("false", "7", False),
        (None, None, False),
    ],
)
def test_a_node_is_a_mig_node_by_its_label_or_else_by_its_slices(
    label: str | None, slices: str | None, is_mig: bool
) -> None:
    labels = {} if label is None else {"node-role.kubernetes.io/mig-enabled": label}
    allocatable = {} if slices is None else {"nvidia.com/mig-1g.5gb": slices}
    cluster = Cluster().put(NODES, node("n", labels=labels, allocatable=allocatable))
    snapshot = SnapshotBuilder(ShardParams(), origin=NOW).build(cluster.store.view(), NOW)
    assert snapshot.cluster.nodes[0].mig_enabled is is_mig
