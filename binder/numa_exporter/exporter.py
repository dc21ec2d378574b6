"""Write the zones of the node's pods onto them, when they change, and repair what others changed.

Only names are known from the kubelet. So after a pod was replaced by another of its name, the second look, which
compares with the API server, writes the annotation again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from binder.numa_exporter.allocations import GrantSource
from binder.numa_exporter.zones import observed_placement
from kube.errors import KubeError, NotFoundError, UnauthorizedError
from kube.gateway import Gateway, Selectors
from kube.keys import NUMA_OBSERVED
from kube.objects.pod import Pod
from kube.resources import PODS

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PlacementExporter:
    """The exporter of one node.

    Parameters
    ----------
    zone_of_cpu : CPU -> its NUMA zone
    """

    gateway: Gateway
    node: str
    source: GrantSource
    zone_of_cpu: Mapping[int, int]
    #: Pod (`namespace/name`) -> the text that was written onto it last.
    _written: dict[str, str] = field(default_factory=dict)

    def poll(self) -> None:
        """Write what has changed since the last look; what cannot be written is tried again in the next.

        Raises
        ------
        AllocationError : the kubelet does not answer
        UnauthorizedError : the API server refuses our credentials
        """
        placements = self._placements()
        for key in self._written.keys() - placements.keys():
            del self._written[key]
        for key, text in placements.items():
            if self._written.get(key) != text:
                self._write(key, text)

    def resync(self) -> None:
        """Write what differs on the API server.

        Raises
        ------
        AllocationError : the kubelet does not answer
        KubeError : the pods of the node cannot be listed
        """
        placements = self._placements()
        on_node = Selectors(fields=f"spec.nodeName={self.node}")
        for pod in self.gateway.list(PODS, as_type=Pod, selectors=on_node).items:
            text = placements.get(pod.key)
            if text is not None and pod.metadata.annotations.get(NUMA_OBSERVED) != text:
                self._write(pod.key, text)

    def _placements(self) -> Mapping[str, str]:
        texts = {
            grant.key: observed_placement(grant, self.zone_of_cpu) for grant in self.source.grants()
        }
        return {key: text for key, text in texts.items() if text}

    def _write(self, key: str, text: str) -> None:
        namespace, _, name = key.partition("/")
        body = {"metadata": {"annotations": {NUMA_OBSERVED: text}}}
        try:
            self.gateway.patch(PODS, name, body, namespace=namespace)
        except NotFoundError:
            pass  # the kubelet still names a pod that is gone
        except UnauthorizedError:
            raise
        except KubeError as error:
            log.warning("pod %s: %s", key, error)
            return
        self._written[key] = text
