"""Write the id of the pod's device onto the pod, once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from binder.reservation_pod.devices import DeviceSource, only_device
from kube.errors import KubeError
from kube.gateway import Gateway
from kube.keys import RESERVED_DEVICE
from kube.objects.pod import Pod
from kube.resources import PODS

log = logging.getLogger(__name__)

ATTEMPTS = 5
PAUSE_S = 1.0


class EnvironmentVariableError(Exception):
    """The process was not told which pod it runs in."""


@dataclass(frozen=True, slots=True)
class OwnPod:
    """The pod that the process runs in."""

    namespace: str
    name: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> OwnPod:
        """Return the pod that POD_NAMESPACE and POD_NAME name.

        Raises
        ------
        EnvironmentVariableError : one of them is missing
        """
        namespace, name = environment.get("POD_NAMESPACE", ""), environment.get("POD_NAME", "")
        if not namespace:
            raise EnvironmentVariableError("could not find pod namespace")
        if not name:
            raise EnvironmentVariableError("could not find pod name")
        return cls(namespace, name)


def report_device(
    gateway: Gateway,
    pod: OwnPod,
    source: DeviceSource,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Write the pod's device onto it unless that was done before; return the device.

    A pod whose container starts again keeps the device that it has reported.

    Raises
    ------
    DeviceError : there is not exactly one device, or it cannot be read
    kube.errors.KubeError : the API server refuses, or does not answer several times in a row
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _report(gateway, pod, source)
        except KubeError as error:
            if error.permanent or attempt == ATTEMPTS:
                raise
            log.warning("attempt %d: %s", attempt, error)
            sleep(PAUSE_S)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _report(gateway: Gateway, pod: OwnPod, source: DeviceSource) -> str:
    current = gateway.get(PODS, pod.name, as_type=Pod, namespace=pod.namespace)
    reported = current.metadata.annotations.get(RESERVED_DEVICE, "")
    if reported:
        return reported
    device = only_device(source)
    body = {"metadata": {"annotations": {RESERVED_DEVICE: device}}}
    gateway.patch(PODS, pod.name, body, namespace=pod.namespace)
    return device
