"""`kaiweb failed_binds`: list the pods whose bind failed, or let them be tried again at once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.keys import BIND_FAILURES
from kube.objects.pod import Pod
from kube.resources import PODS
from queues.cluster import gateway
from queues.workloads.bind_failures import read_failures


class Command(BaseCommand):
    """Show the memory of failed binds, which is an annotation of each pod, or remove it."""

    help = "List the pods whose bind failed and when each is tried next; --reset tries them now."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "pods", nargs="*", metavar="NAMESPACE/POD", help="only these (default: all)"
        )
        parser.add_argument(
            "--reset", action="store_true", help="forget the failures of the pods named"
        )
        parser.add_argument("--all", action="store_true", help="with --reset: of all pods")

    def handle(self, *args: Any, **options: Any) -> None:
        """List the pods, or remove their annotation."""
        names = set(options["pods"])
        if options["reset"] and bool(names) == options["all"]:
            raise CommandError("--reset: expected names of pods, or --all")
        cluster = gateway()
        pods = _waiting_pods(cluster, names)
        unknown = sorted(names - {pod.key for pod in pods})
        for pod in pods:
            if options["reset"]:
                _forget(cluster, pod)
                self.stdout.write(f"{pod.key}: is tried in the next cycle")
            elif (failures := read_failures(pod.metadata.annotations[BIND_FAILURES])) is not None:
                self.stdout.write(f"{pod.key}: {failures.text()}")
        if unknown:
            raise CommandError(f"no failed bind of {', '.join(unknown)}", returncode=1)


def _waiting_pods(cluster: Gateway, names: set[str]) -> list[Pod]:
    """Return the pods without a node whose bind failed, sorted by key."""
    listing = cluster.list(PODS, as_type=Pod)
    pods = [
        pod
        for pod in listing.items
        if BIND_FAILURES in pod.metadata.annotations
        and not pod.spec.node_name
        and (not names or pod.key in names)
    ]
    return sorted(pods, key=lambda pod: pod.key)


def _forget(cluster: Gateway, pod: Pod) -> None:
    body = {"metadata": {"annotations": {BIND_FAILURES: None}}}
    try:
        cluster.patch(PODS, pod.metadata.name, body, namespace=pod.metadata.namespace)
    except NotFoundError:
        return  # the pod was deleted meanwhile, and its annotation with it
