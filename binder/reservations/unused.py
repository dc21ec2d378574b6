"""Delete reservation pods that nobody uses, although another binder may begin to use one at the same moment.

Watches lag, so what this binder knows is only a reason to ask the server whether somebody uses the reservation, and
if nobody seems to, in this order:

1. The reservation pod is marked as unused.
2. The open bind requests for its node, and then the pods on that node, are read. If one of them names the GPU group,
   the reservation is in use.
3. The reservation pod is deleted if it still has the version with the mark; otherwise everything starts over.

A binder that wants to use a reservation has an open bind request before it reads the reservation pod. If the pod is
marked, that binder first takes the mark away, which changes the version. So either step 2 shows the bind request, or
step 3 is refused. (Requests are read before pods, because a request ends after its pod is bound.)
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from binder.params import ReservationParams
from binder.reservations.groups import groups_of, is_over
from kube.errors import ConflictError, InvalidError, NotFoundError
from kube.gateway import Gateway, Selectors
from kube.keys import SELECTED_NODE_LABEL, UNUSED_RESERVATION
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, PODS
from kube.store import Store

log = logging.getLogger(__name__)

#: How often a deletion is tried on a reservation pod that others keep changing.
DELETE_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class UnusedReservations:
    """Marks, checks and deletes reservation pods."""

    gateway: Gateway
    store: Store
    params: ReservationParams

    def delete(self, holder: Pod, group: str) -> None:
        """Delete the reservation pod of a group unless it is in use.

        A pod that was changed after it was marked is judged again: a user may have taken the mark away, or the
        kubelet may have written the status.

        Parameters
        ----------
        holder : the reservation pod as this binder knows it
        """
        for _ in range(DELETE_ATTEMPTS):
            if self._is_in_use(holder, group):
                return  # not marked: its users would have to take the mark away
            try:
                is_gone = self._mark_and_delete(holder, group)
            except NotFoundError:
                is_gone = True
            except (ConflictError, InvalidError) as error:
                log.info("reservation pod %s was changed meanwhile: %s", holder.key, error)
                continue
            if is_gone:
                self.store.discard(PODS, holder)
            return
        log.warning("reservation pod %s is changed all the time; a sweep deletes it", holder.key)

    def _mark_and_delete(self, holder: Pod, group: str) -> bool:
        """Mark a reservation pod and delete it if it is still unused then; return whether it was deleted.

        Raises
        ------
        NotFoundError : it is gone already
        ConflictError : it was changed after it was marked
        InvalidError : another pod has its name now
        """
        meta = holder.metadata
        body = {"metadata": {"uid": meta.uid, "annotations": {UNUSED_RESERVATION: "true"}}}
        answer = self.gateway.patch(PODS, meta.name, body, namespace=meta.namespace)
        marked = convert(answer, Pod)
        if self._is_in_use(marked, group):
            self.keep(marked)
            return False
        self.gateway.delete(
            PODS,
            meta.name,
            namespace=meta.namespace,
            grace_period_s=0,
            resource_version=marked.metadata.resource_version,
            uid=meta.uid,
        )
        return True

    def keep(self, holder: Pod) -> Pod:
        """Take the mark from a reservation pod that is going to be used; return the pod.

        Raises
        ------
        ConflictError : the pod was changed since it was read
        NotFoundError : it is deleted
        """
        meta = holder.metadata
        if UNUSED_RESERVATION not in meta.annotations:
            return holder
        body = {
            "metadata": {
                "resourceVersion": meta.resource_version,
                "annotations": {UNUSED_RESERVATION: None},
            }
        }
        return convert(self.gateway.patch(PODS, meta.name, body, namespace=meta.namespace), Pod)

    def _is_in_use(self, holder: Pod, group: str) -> bool:
        node = holder.spec.node_name
        requests = self.gateway.list(
            BINDREQUESTS,
            as_type=BindRequest,
            selectors=Selectors(labels=f"{SELECTED_NODE_LABEL}={node}"),
        )
        if any(
            group in request.spec.selected_gpu_groups and not is_over(request)
            for request in requests.items
        ):
            return True
        pods = self.gateway.list(
            PODS, as_type=Pod, selectors=Selectors(fields=f"spec.nodeName={node}")
        )
        return any(
            group in groups_of(pod)
            and not pod.is_finished
            and pod.metadata.namespace != self.params.namespace
            for pod in pods.items
        )
