"""`kaiweb failed_binds`: list the pods whose bind failed and the nodes that rest, or let both be tried again at once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.keys import BIND_FAILURES, NODE_POOL
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.resources import NODES, PODGROUPS, PODS
from kube.values.times import format_time
from queues.cluster import gateway
from scheduler.load.bind_memory import BindMemory, bind_memory


class Command(BaseCommand):
    """Show the memory of failed binds, which is an annotation of each pod, or remove it."""

    help = "List the pods whose bind failed and the nodes that rest; --reset tries them now."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "pods", nargs="*", metavar="NAMESPACE/POD", help="only these (default: all)"
        )
        parser.add_argument(
            "--node",
            action="append",
            default=[],
            metavar="NODE",
            help="the pods that failed on this node only; with --reset it rests no longer",
        )
        parser.add_argument(
            "--reset", action="store_true", help="forget the failures of the pods or nodes named"
        )
        parser.add_argument("--all", action="store_true", help="with --reset: of all pods")

    def handle(self, *args: Any, **options: Any) -> None:
        """List pods and nodes, or remove annotations."""
        names, nodes = set(options["pods"]), set(options["node"])
        if options["reset"] and bool(names or nodes) == options["all"]:
            raise CommandError("--reset: expected names of pods, --node, or --all")
        cluster = gateway()
        memory = _memory(cluster)
        pod_keys = names | {key for node in nodes for key in memory.pods_blaming(node)}
        shown = pod_keys & memory.known.keys() if names or nodes else memory.known.keys()
        for key in sorted(shown):
            if options["reset"]:
                _forget(cluster, key)
                self.stdout.write(f"{key}: is tried in the next cycle")
            else:
                self.stdout.write(f"{key}: {memory.known[key].text()}")
        if not options["reset"] and not names:
            self._list_nodes(memory, nodes)
        unknown = [
            *sorted(names - memory.known.keys()),
            *(f"pods on node {node}" for node in sorted(nodes) if not memory.pods_blaming(node)),
        ]
        if unknown:
            raise CommandError(f"no failed bind of {', '.join(unknown)}", returncode=1)

    def _list_nodes(self, memory: BindMemory, nodes: Iterable[str]) -> None:
        for node, until in sorted(memory.resting.items()):
            if not nodes or node in nodes:
                end = format_time(datetime.fromtimestamp(round(until), UTC))
                pods = ", ".join(memory.pods_blaming(node))
                self.stdout.write(
                    f"node {node}: gets no new pods until {end}; failed on it: {pods}"
                )


def _memory(cluster: Gateway) -> BindMemory:
    """Return the memory of all shards as their next cycles will see it."""
    pods = {pod.key: pod for pod in cluster.list(PODS, as_type=Pod).items}
    groups = {group.key: group for group in cluster.list(PODGROUPS, as_type=PodGroup).items}
    now = time.time()
    resting: dict[str, float] = {}
    for names in _pools(cluster).values():
        resting |= bind_memory(pods, groups, (), names, now).resting
    known = bind_memory(pods, groups, (), (), now).known
    return BindMemory(known=known, resting=resting)


def _pools(cluster: Gateway) -> Mapping[str, list[str]]:
    """Return node pool -> names of its nodes; each pool decides by itself which of its nodes rest."""
    pools: dict[str, list[str]] = defaultdict(list)
    for node in cluster.list(NODES, as_type=Node).items:
        pools[node.metadata.labels.get(NODE_POOL, "")].append(node.metadata.name)
    return pools


def _forget(cluster: Gateway, key: str) -> None:
    namespace, _, name = key.partition("/")
    body = {"metadata": {"annotations": {BIND_FAILURES: None}}}
    try:
        cluster.patch(PODS, name, body, namespace=namespace)
    except NotFoundError:
        return  # the pod was deleted meanwhile, and its annotation with it
