"""Parameters of the binder, with KAI's defaults. Invalid values are refused when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from binder.errors import ConfigError
from kube.errors import BadValueError
from kube.keys import RESERVATION, SCALE_ADJUST
from kube.values.numbers import parse_float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationParams:
    """Properties of reservation pods, each of which holds a GPU for others to share.

    Attributes
    ----------
    timeout_s : how long the binder waits for a reservation pod to name its device
    scaling_namespace : where the pods run that ask a cluster autoscaler for room
    """

    namespace: str = RESERVATION
    service_account: str = RESERVATION
    app_label: str = RESERVATION
    image: str = "registry/local/kai-scheduler/resource-reservation"
    timeout_s: float = 40.0
    runtime_class: str = ""
    resources: Mapping[str, Any] = field(default_factory=dict)
    pod_security: Mapping[str, Any] = field(default_factory=dict)
    container_security: Mapping[str, Any] = field(default_factory=dict)
    scaling_namespace: str = SCALE_ADJUST


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConfig:
    """The configuration of one preparation step; a higher priority runs earlier."""

    name: str
    priority: int
    is_enabled: bool = True
    arguments: Mapping[str, str] = field(default_factory=dict)

    def seconds(self, name: str) -> float:
        """Return an argument that is a number of seconds."""
        text = self._argument(name)
        try:
            return parse_float(text)
        except BadValueError:
            raise ConfigError(f'invalid argument "{name}"="{text}": expected a number') from None

    def flag(self, name: str) -> bool:
        """Return an argument that is true or false."""
        text = self._argument(name)
        if text.lower() not in ("true", "false"):
            raise ConfigError(f'invalid argument "{name}"="{text}": expected true or false')
        return text.lower() == "true"

    def _argument(self, name: str) -> str:
        if name not in self.arguments:
            raise ConfigError(f'missing argument "{name}"')
        return self.arguments[name]


DEFAULT_STEPS = (
    StepConfig(name="volumebinding", priority=300, arguments={"bindTimeoutSeconds": "120"}),
    StepConfig(name="dynamicresources", priority=200, arguments={"bindTimeoutSeconds": "120"}),
    StepConfig(name="gpusharing", priority=100, arguments={"cdiEnabled": "false"}),
    StepConfig(name="hamicore", priority=50, is_enabled=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinderParams:
    """All parameters of the binder.

    Attributes
    ----------
    concurrency : how many requests are carried out at the same time
    base_delay_s : how often due requests are looked for, and the first pause between two attempts, which doubles
    max_delay_s : the longest pause between two attempts at one request
    """

    concurrency: int = 16
    base_delay_s: float = 1.0
    max_delay_s: float = 60.0
    reservation: ReservationParams = ReservationParams()
    steps: tuple[StepConfig, ...] = DEFAULT_STEPS
