"""What the Config says of the binder, and what it is refused for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binder.errors import ConfigError
from binder.params import BinderParams, ReservationParams, StepConfig
from binder.settings import params_from_environment
from binder.steps.table import make_steps
from tests.fakes.gateway import FakeGateway


def params(**binder_spec: Any) -> BinderParams:
    return params_from_environment({"KAIWEB_BINDER": json.dumps(binder_spec)})


def step(binder_params: BinderParams, name: str) -> StepConfig:
    (step_config,) = (candidate for candidate in binder_params.steps if candidate.name == name)
    return step_config


def names(binder_params: BinderParams) -> list[str]:
    return [name for name, _ in make_steps(FakeGateway(), binder_params.steps)]


def test_without_configuration_the_parameters_are_kais_defaults() -> None:
    assert params_from_environment({}) == BinderParams()
    assert names(BinderParams()) == ["volumebinding", "dynamicresources", "gpusharing"]


def test_the_config_sets_the_fields_of_reservation_pods() -> None:
    binder_params = params_from_environment(
        {
            "KAIWEB_BINDER": json.dumps(
                {
                    "maxConcurrentReconciles": 3,
                    "resourceReservation": {
                        "allocationTimeout": 7,
                        "runtimeClassName": "nvidia",
                        "podResources": {"requests": {"cpu": "2m", "nvidia.com/gpu": "4"}},
                        "reservationPodSecurityContext": {"runAsUser": 5},
                    },
                }
            ),
            "KAIWEB_SCALE_ADJUST_NAMESPACE": "stand-ins",
        }
    )
    assert binder_params.concurrency == 3
    assert binder_params.reservation == ReservationParams(
        timeout_s=7.0,
        runtime_class="nvidia",
        resources={"requests": {"cpu": "2m"}},
        pod_security={"runAsUser": 5},
        scaling_namespace="stand-ins",
    )


def test_plugin_fields_are_overridden_one_by_one_and_arguments_as_a_whole() -> None:
    binder_params = params(
        volumeBindingTimeoutSeconds=9,
        cdiEnabled=True,
        plugins={
            "dynamicresources": {"priority": 400, "arguments": {"bindTimeoutSeconds": "5"}},
            "hamicore": {"enabled": True},
        },
    )
    assert step(binder_params, "volumebinding").arguments == {"bindTimeoutSeconds": "9"}
    assert step(binder_params, "dynamicresources").arguments == {"bindTimeoutSeconds": "5"}
    assert step(binder_params, "gpusharing").arguments == {"cdiEnabled": "true"}
    assert names(binder_params) == ["dynamicresources", "volumebinding", "gpusharing", "hamicore"]


@pytest.mark.parametrize(
    ("binder_spec", "problem"),
    [
        ({"plugins": {"mine": {}}}, "failed to get binder plugin mine"),
        ({"plugins": {"gpusharing": {"arguments": {}}}}, 'missing argument "cdiEnabled"'),
        (
            {"plugins": {"gpusharing": {"enabled": False}, "hamicore": {"enabled": True}}},
            '"hamicore" plugin requires "gpusharing" plugin to be enabled',
        ),
        (
            {"plugins": {"hamicore": {"enabled": True, "priority": 100}}},
            r'"hamicore" plugin requires "gpusharing" to run before it \(expected '
            r'"gpusharing".priority > "hamicore".priority, got 100 <= 100\)',
        ),
    ],
)
def test_an_invalid_config_is_refused_at_start(binder_spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        names(params(**binder_spec))


def test_the_error_for_a_value_of_the_wrong_type_names_its_field() -> None:
    with pytest.raises(ConfigError, match=r"KAIWEB_BINDER: expected spec\.binder of a Config"):
        params(maxConcurrentReconciles="many")
    with pytest.raises(ConfigError, match="maxConcurrentReconciles: expected 1 or more, got -1"):
        params(maxConcurrentReconciles=-1)


def test_the_image_of_reservation_pods_is_taken_from_the_environment() -> None:
    chosen = params_from_environment({"KAIWEB_RESERVATION_IMAGE": "registry.test/reservation:2"})
    assert chosen.reservation.image == "registry.test/reservation:2"
    assert params_from_environment({}).reservation.image == ReservationParams().image
