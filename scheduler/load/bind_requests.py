"""The bind requests of a cycle: live ones, by pod, and spent ones, which are to be deleted."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from kube.objects.bindrequest import BindRequest
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS
from kube.store import StoreView
from scheduler.load.changes import Following, add_to, remove_from
from scheduler.settings.params import ShardParams


@dataclass(slots=True)
class BindRequestTable:
    """Sorts bind requests and keeps the result; only those that changed, or whose pod did, are sorted again.

    Attributes
    ----------
    live : by the key of the pod
    """

    params: ShardParams
    live: dict[str, BindRequest] = field(default_factory=dict)
    #: By key of the request, as are the next two.
    _spent: dict[str, BindRequest] = field(default_factory=dict)
    _requests: Following[BindRequest] = field(default_factory=lambda: Following(BINDREQUESTS))
    _pod_of: dict[str, str] = field(default_factory=dict)
    #: Key of a pod -> the keys of the requests that name it.
    _naming: dict[str, set[str]] = field(default_factory=dict)
    _node_names: Set[str] = frozenset()

    @property
    def spent(self) -> tuple[BindRequest, ...]:
        """Return the requests of this shard that failed for good or name a pod or node that is gone."""
        return tuple(self._spent[key] for key in sorted(self._spent))

    def update(
        self,
        view: StoreView,
        pods: Mapping[str, Pod],
        changed_pods: Set[str],
        node_names: Set[str],
    ) -> set[str]:
        """Take in what changed; return the keys of the pods whose live request is another one now."""
        affected = self._note(view)
        if node_names is not self._node_names:
            affected |= self._naming.keys()
            self._node_names = node_names
        else:
            affected |= changed_pods & self._naming.keys()
        return {key for key in affected if self._settle(key, pods.get(key))}

    def _note(self, view: StoreView) -> set[str]:
        """Follow which requests name which pods; return the pods whose requests changed."""
        affected = set()
        for key in self._requests.follow(view):
            request = self._requests.objects.get(key)
            if (pod := self._pod_of.pop(key, None)) is not None:
                remove_from(self._naming, pod, key)
                affected.add(pod)
            if request is None:
                self._spent.pop(key, None)
                continue
            pod = f"{request.metadata.namespace}/{request.spec.pod_name}"
            self._pod_of[key] = pod
            add_to(self._naming, pod, key)
            affected.add(pod)
        return affected

    def _settle(self, pod_key: str, pod: Pod | None) -> bool:
        """Sort the requests of a pod; return whether its live one is another one now."""
        live = None
        for key in sorted(self._naming.get(pod_key, ())):
            request = self._requests.objects[key]
            self._spent.pop(key, None)
            is_orphan = pod is not None and not request.is_for(pod)
            is_lost = request.is_failed or request.spec.selected_node not in self._node_names
            if self.params.owns(request.metadata.labels) and (is_lost or is_orphan):
                self._spent[key] = request
            elif not request.is_failed and not is_orphan:
                live = request
        if live is self.live.get(pod_key):
            return False
        if live is None:
            del self.live[pod_key]
        else:
            self.live[pod_key] = live
        return True
