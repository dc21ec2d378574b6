"""The handler of each webhook path, for the HTTPS port and for Django's URLs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.objects.meta import NamedObject
from kube.resources import QUEUES
from queues.admission.objects.pending_places import PendingPlaces
from queues.admission.objects.podgroup import validate_pod_group
from queues.admission.objects.queue import validate_queue
from queues.admission.objects.topology import validate_topology
from queues.admission.pods.webhook import mutate_pod, validate_pod
from queues.admission.review import Handler, ReviewRequest, Verdict, denied, respond
from queues.admission.settings import AdmissionSettings
from queues.tree.hierarchy import Tree
from queues.tree.shape import QueueShape, read_queue

MUTATE_POD = "/mutate--v1-pod"
VALIDATE_POD = "/validate--v1-pod"
VALIDATE_TOPOLOGY = "/validate-kai-scheduler-v1alpha1-topology"
VALIDATE_QUEUE = "/validate-scheduling-run-ai-v2-queue"
VALIDATE_POD_GROUP = "/validate-scheduling-run-ai-v2alpha2-podgroup"
PATHS = (MUTATE_POD, VALIDATE_POD, VALIDATE_TOPOLOGY, VALIDATE_QUEUE, VALIDATE_POD_GROUP)
#: If more queues than this have changed, one list reads all queues; otherwise each is read alone.
MOST_SINGLE_READS = 10


@dataclass(slots=True)
class Routes:
    """Calls the handler of a path.

    Attributes
    ----------
    tree : reads the queue tree
    with_ancestors : (tree, parent) -> the tree with this queue and its ancestors as they are now
    remember : called with the new queue of each allowed edit; its version is that of the queue before the edit
    compares_quotas : whether KAI's check of the quotas against parent and children is made too
    """

    tree: Callable[[], Tree]
    with_ancestors: Callable[[Tree, str], Tree] = lambda tree, _parent: tree
    remember: Callable[[QueueShape], None] = lambda _shape: None
    settings: AdmissionSettings = field(default_factory=AdmissionSettings)
    compares_quotas: bool = False
    _pending: PendingPlaces = field(default_factory=PendingPlaces)
    _queue_guard: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, body: bytes) -> bytes | None:
        """Return the response of a path, or None if it is unknown.

        Raises
        ------
        BadReviewError : the body is not an AdmissionReview
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

    def _queue(self, request: ReviewRequest) -> Verdict:
        """Validate one queue at a time, so that of two edits that form a circle the second sees the first."""
        if request.operation == "DELETE":
            return validate_queue(request, {}, compares_quotas=self.compares_quotas)
        queue, _ = read_queue(request.object)
        stored = read_queue(request.old_object)[0] if request.old_object else None
        has_new_parent = bool(queue.parent) and not (stored and stored.parent == queue.parent)
        with self._queue_guard:
            tree = self.tree()
            if has_new_parent:
                tree = self.with_ancestors(tree, queue.parent)
            verdict = validate_queue(request, tree, compares_quotas=self.compares_quotas)
            if not verdict.is_allowed:
                return verdict
            version = stored.version if stored else ""
            may_be_stored = not request.is_dry_run and (stored is None or bool(version))
            if has_new_parent and queue.name:
                circle = self._pending.circle(tree, queue.name, queue.parent)
                if circle:
                    return _refused_circle(queue, circle)
                if may_be_stored:
                    self._pending.add(queue.name, queue.parent, version)
            if may_be_stored and queue.name:
                self.remember(replace(queue, version=version))
            return verdict


def _refused_circle(queue: QueueShape, circle: list[str]) -> Verdict:
    path = "' below '".join(circle)
    return denied(
        f"queue '{queue.name}' cannot be below '{queue.parent}': another edit is putting"
        f" '{path}', and '{queue.name}' would be among its own ancestors"
    )


@dataclass(slots=True)
class ListedTree:
    """Reads the queue tree from the API server; a queue whose version has not changed is not read again.

    Without that, creating many queues one after the other would read each of them at every creation.
    """

    gateway: Gateway
    #: Queue name -> the queue as last read.
    _shapes: dict[str, QueueShape] = field(default_factory=dict)

    def __call__(self) -> Tree:
        """Return the tree as it is now."""
        listed = self.gateway.list(QUEUES, as_type=NamedObject).items
        versions = {item.metadata.name: item.metadata.resource_version for item in listed}
        shapes = {
            name: shape
            for name, shape in self._shapes.items()
            if versions.get(name) == shape.version
        }
        for body in self._read([name for name in versions if name not in shapes]):
            shape, _ = read_queue(body)
            shapes[shape.name] = shape
        self._shapes = shapes
        return shapes

    def _read(self, names: Collection[str]) -> Iterable[dict[str, Any]]:
        if len(names) > MOST_SINGLE_READS:
            return self.gateway.list(QUEUES, as_type=dict).items
        return self._read_each(names)

    def _read_each(self, names: Iterable[str]) -> Iterator[dict[str, Any]]:
        for name in names:
            try:
                yield self.gateway.get(QUEUES, name, as_type=dict)
            except NotFoundError:
                continue  # deleted since the list
