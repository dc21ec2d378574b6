"""The main process of a reservation pod (`python -m binder.reservation_pod`).

    POD_NAMESPACE, POD_NAME    the pod it runs in (the binder sets both)
    KAIWEB_DEVICES             ids to report instead of asking NVML, separated by commas

It reports the device and then idles until SIGTERM, because the device is held as long as the pod runs.
Any error ends it with exit code 1, and the kubelet starts it again.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping

from binder.reservation_pod.devices import DeviceError, DeviceSource, ListedDevices, NvmlDevices
from binder.reservation_pod.process import EnvironmentVariableError, OwnPod, report_device
from kube.client import connect
from kube.errors import KubeError
from kube.link import Target

log = logging.getLogger("binder.reservation_pod")
DEVICES_VARIABLE = "KAIWEB_DEVICES"


def main(environment: Mapping[str, str] = os.environ) -> int:
    """Report the device and hold it until SIGTERM or SIGINT; return the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    gateway = connect(Target(user_agent="kaiweb-resource-reservation"))
    try:
        device = report_device(gateway, OwnPod.of(environment), source_of(environment))
    except (EnvironmentVariableError, DeviceError, KubeError) as error:
        log.error("%s", error)
        return 1
    finally:
        gateway.close()
    log.info("holding device %s", device)
    stop.wait()
    return 0


def source_of(environment: Mapping[str, str]) -> DeviceSource:
    """Return the devices that KAIWEB_DEVICES lists; without it, those that NVML shows."""
    device_ids = environment.get(DEVICES_VARIABLE, "")
    return ListedDevices(device_ids.split(",")) if device_ids else NvmlDevices()


if __name__ == "__main__":
    sys.exit(main())
