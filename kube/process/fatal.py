"""End a process whose credentials the cluster refuses."""

from __future__ import annotations

import logging
import os

from kube.errors import KubeError

log = logging.getLogger(__name__)

#: The exit code by which a supervisor tells refused credentials from other failures.
UNAUTHORIZED_EXIT = 3


def end_process(error: KubeError) -> None:
    """End the whole process at once: without credentials nothing that it does can work."""
    log.critical("the cluster refuses our credentials: %s", error)
    os._exit(UNAUTHORIZED_EXIT)
