"""What queues hold of each GPU model, for queues with bounds per model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from django.db.models import Sum

from kube.objects.pod import FINISHED_PHASES
from queues.models import Node, Pod, PodGroup
from queues.tree import hierarchy
from queues.tree.shape import QueueShape


def model_use(shapes: Mapping[str, QueueShape]) -> Mapping[str, Mapping[str, float]]:
    """Return queue -> GPU model -> GPUs of its pods and of those below it.

    Pods that are leaving count no more, as for the scheduler.
    """
    model_of = dict(Node.objects.exclude(model="").order_by().values_list("name", "model"))
    queue_of = dict(PodGroup.objects.order_by().values_list("key", "queue"))
    pods = Pod.objects.filter(gpu__gt=0, is_deleting=False).exclude(node="").exclude(group="")
    sums = pods.exclude(phase__in=FINISHED_PHASES).order_by().values_list("group", "node")
    use: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for group, node, gpus in sums.annotate(gpus=Sum("gpu")):
        for queue in hierarchy.ancestors(shapes, queue_of.get(group, "")):
            use[queue][model_of.get(node, "")] += gpus
    return use
