"""Whether containers get their devices through CDI, as the settings of NVIDIA's GPU operator say."""

from __future__ import annotations

import logging
import re

from kube.errors import ForbiddenError, NotFoundError
from kube.gateway import Gateway
from kube.objects.policy import ClusterPolicy
from kube.resources import CLUSTER_POLICIES

log = logging.getLogger(__name__)

VERSION_LABEL = "app.kubernetes.io/version"
#: From this version on the GPU operator injects devices through CDI wherever CDI is enabled.
CDI_DEFAULT_SINCE = (25, 10, 0)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


def cluster_uses_cdi(gateway: Gateway) -> bool:
    """Return whether the first ClusterPolicy turns CDI on; False if there is none or it may not be read.

    Raises
    ------
    kube.errors.KubeError : the API server does not answer
    """
    try:
        policies = gateway.list(CLUSTER_POLICIES, as_type=ClusterPolicy).items
    except (NotFoundError, ForbiddenError) as error:
        log.info("no ClusterPolicy of a GPU operator: %s", error)
        return False
    first = min(policies, key=lambda policy: policy.metadata.name, default=None)
    return first is not None and _uses_cdi(first)


def _uses_cdi(policy: ClusterPolicy) -> bool:
    cdi = policy.spec.cdi
    if not cdi.enabled:
        return False
    version = _VERSION.match(policy.metadata.labels.get(VERSION_LABEL, ""))
    is_default = version is not None and tuple(map(int, version.groups())) >= CDI_DEFAULT_SINCE
    return is_default or cdi.default
