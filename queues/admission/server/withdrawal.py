"""What runs instead of the admission server where there is none: it removes the webhooks of an earlier one."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from kube.errors import KubeError
from kube.gateway import Gateway
from queues.admission.install.registration import withdraw

log = logging.getLogger(__name__)
RETRY_S = 2.0


@dataclass(slots=True)
class AdmissionWithdrawal:
    """Deletes our webhook configurations in a thread, as soon as the cluster answers."""

    gateway: Gateway
    retry_s: float = RETRY_S
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self.run, name="admission-withdrawal", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def run(self) -> None:
        """Try until it works, or until the cluster says that it never will."""
        while not self._stop.is_set():
            try:
                withdraw(self.gateway)
                return
            except KubeError as error:
                log.info("cannot remove the webhooks: %s", error)
                if error.permanent:
                    return
            self._stop.wait(self.retry_s)
