"""The binder of this process, started by its Celery worker or by `kaiweb run_binder`."""

from __future__ import annotations

import threading

from binder.cdi import cluster_uses_cdi
from binder.params import BinderParams
from binder.settings import params_from_environment
from binder.worker import BinderWorker
from kube.errors import UnauthorizedError
from kube.gateway import Gateway
from kube.process.fatal import end_process
from queues.cluster import gateway

_lock = threading.Lock()
_worker: BinderWorker | None = None


def binder(params: BinderParams | None = None) -> BinderWorker:
    """Return the running binder, starting it at first use."""
    global _worker
    with _lock:
        if _worker is None:
            cluster = gateway()
            _worker = BinderWorker(cluster, params or _params(cluster), end_process)
            _worker.start()
        return _worker


def _params(cluster: Gateway) -> BinderParams:
    """Return the parameters from the environment; what it leaves open is read from the cluster."""
    try:
        return params_from_environment(uses_cdi=lambda: cluster_uses_cdi(cluster))
    except UnauthorizedError as error:
        end_process(error)
        raise


def stop_binder() -> None:
    """Stop the binder if it runs."""
    global _worker
    with _lock:
        if _worker is not None:
            _worker.stop()
            _worker = None
