"""Set the memory limit of the HAMi isolation library from the binder's ConfigMap."""

from __future__ import annotations

from kube.keys import SHARED_GPU_CONFIG_MAP
from queues.admission.bodies import Json
from queues.admission.pods.containers import annotations_of, fraction_container, set_env
from queues.admission.pods.gpu_sharing import is_fraction_pod
from queues.admission.settings import AdmissionSettings

MEMORY_LIMIT = "CUDA_DEVICE_MEMORY_LIMIT"


def mutate(pod: Json, settings: AdmissionSettings) -> None:
    """Make the fraction container read its memory limit from the ConfigMap that `gpu_sharing` has named."""
    name_prefix = annotations_of(pod).get(SHARED_GPU_CONFIG_MAP)
    if not settings.hami_core or not is_fraction_pod(pod) or not name_prefix:
        return
    ref = fraction_container(pod)
    if ref is None:
        return
    source = {
        "configMapKeyRef": {
            "name": f"{name_prefix}-{ref.index}",
            "key": MEMORY_LIMIT,
            "optional": True,
        }
    }
    set_env(ref.container, {"name": MEMORY_LIMIT, "valueFrom": source})


def validate(pod: Json, settings: AdmissionSettings) -> None:
    """Accept every pod; this step only mutates."""
    del pod, settings
