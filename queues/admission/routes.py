"""Which path answers what; the same table serves the HTTPS port and Django's URLs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from kube.gateway import Gateway
from kube.resources import QUEUES
from queues.admission.objects.pending_places import PendingPlaces
from queues.admission.objects.podgroup import validate_pod_group
from queues.admission.objects.queue import tree_of, validate_queue
from queues.admission.objects.topology import validate_topology
from queues.admission.pods.webhook import mutate_pod, validate_pod
from queues.admission.review import Handler, Request, Verdict, denied, respond
from queues.admission.settings import AdmissionSettings
from queues.tree.hierarchy import Tree
from queues.tree.shape import read_queue

MUTATE_POD = "/mutate--v1-pod"
VALIDATE_POD = "/validate--v1-pod"
VALIDATE_TOPOLOGY = "/validate-kai-scheduler-v1alpha1-topology"
VALIDATE_QUEUE = "/validate-scheduling-run-ai-v2-queue"
VALIDATE_POD_GROUP = "/validate-scheduling-run-ai-v2alpha2-podgroup"
PATHS = (MUTATE_POD, VALIDATE_POD, VALIDATE_TOPOLOGY, VALIDATE_QUEUE, VALIDATE_POD_GROUP)


@dataclass(slots=True)
class Routes:
    """Answers reviews by path.

    Attributes
    ----------
    tree : reads the queue tree as it is now
    """

    tree: Callable[[], Tree]
    settings: AdmissionSettings = field(default_factory=AdmissionSettings)
    compares_quotas: bool = False
    _pending: PendingPlaces = field(default_factory=PendingPlaces)
    _queue_guard: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, body: bytes) -> bytes | None:
        """Return the answer of a path, or None when nothing is served there.

        Raises
        ------
        BadReviewError : the body is no AdmissionReview
        """
        handler = self._handlers().get(path)
        return None if handler is None else respond(body, handler)

    def _handlers(self) -> dict[str, Handler]:
        return {
            MUTATE_POD: lambda request: mutate_pod(request, self.settings),
            VALIDATE_POD: lambda request: validate_pod(request, self.settings),
            VALIDATE_TOPOLOGY: validate_topology,
            VALIDATE_QUEUE: self._queue,
            VALIDATE_POD_GROUP: validate_pod_group,
        }

    def _queue(self, request: Request) -> Verdict:
        """Judge one queue at a time, so that of two edits that make a circle the second one sees the first."""
        if request.operation == "DELETE":
            return validate_queue(request, {}, compares_quotas=self.compares_quotas)
        with self._queue_guard:
            tree = self.tree()
            verdict = validate_queue(request, tree, compares_quotas=self.compares_quotas)
            if not verdict.is_allowed:
                return verdict
            return self._place(request, tree) or verdict

    def _place(self, request: Request, tree: Tree) -> Verdict | None:
        """Refuse a place that makes a circle with one just let through; else remember it."""
        queue, _ = read_queue(request.object)
        before, _ = read_queue(request.old_object) if request.old_object else (None, ())
        if not queue.name or not queue.parent or (before and before.parent == queue.parent):
            return None
        circle = self._pending.circle(tree, queue.name, queue.parent)
        if circle:
            way = "' below '".join(circle)
            return denied(
                f"queue '{queue.name}' cannot be below '{queue.parent}': another edit is putting"
                f" '{way}', and '{queue.name}' would be among its own ancestors"
            )
        if not request.is_dry_run and (before is None or before.version):
            self._pending.note(queue.name, queue.parent, before.version if before else "")
        return None


def listed_tree(gateway: Gateway) -> Tree:
    """Return the queue tree as the API server has it."""
    return tree_of(list(gateway.list(QUEUES, as_type=dict).items))
