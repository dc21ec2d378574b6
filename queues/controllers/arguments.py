"""Command-line flags of the controllers: KAI's names and defaults, read into `assembly.Options`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from kube.keys import NODE_POOL, QUEUE, SCHEDULER_NAME, SYSTEM_NAMESPACE
from queues.controllers.assembly import Options
from queues.controllers.metrics import parse_pairs
from queues.controllers.scale_adjuster import AdjusterSettings
from queues.grouping.base import Settings
from queues.grouping.engine.controller import CONCURRENCY

BOOLEANS = ("true", "false")


def add_common(parser: ArgumentParser) -> None:
    parser.add_argument("--scheduler-name", default=SCHEDULER_NAME)
    parser.add_argument("--namespace", default=SYSTEM_NAMESPACE, help="where the leases live")
    parser.add_argument("--leader-elect", action="store_true")
    parser.add_argument("--metrics-bind-address", default="", help="host:port; empty serves none")


def add_pod_grouper(parser: ArgumentParser) -> None:
    parser.add_argument("--queue-label-key", default=QUEUE)
    parser.add_argument("--nodepool-label-key", default=NODE_POOL)
    parser.add_argument(
        "--group-pods", default="true", choices=BOOLEANS, help="run the pod grouper"
    )
    parser.add_argument("--max-concurrent-reconciles", type=int, default=CONCURRENCY)
    parser.add_argument("--search-legacy-pg", default="true", choices=BOOLEANS)
    parser.add_argument("--knative-gang-schedule", default="true", choices=BOOLEANS)
    parser.add_argument("--generic-karta-fallback", default="true", choices=BOOLEANS)
    parser.add_argument("--default-priorities-configmap-name", default="")
    parser.add_argument("--default-priorities-configmap-namespace", default="")
    parser.add_argument("--pod-label-selector", default="")
    parser.add_argument("--namespace-label-selector", default="")


def add_status(parser: ArgumentParser) -> None:
    for name, whose in (("podgroup", "pod groups"), ("queue", "queues")):
        parser.add_argument(
            f"--{name}-status", default="true", choices=BOOLEANS, help=f"keep the status of {whose}"
        )
    parser.add_argument("--metrics-namespace", default="kai")
    parser.add_argument("--queue-label-to-metric-label", default="")
    parser.add_argument("--queue-label-to-default-metric-value", default="")


def add_adjuster(parser: ArgumentParser) -> None:
    defaults = AdjusterSettings()
    parser.add_argument("--node-scale-adjuster", action="store_true")
    parser.add_argument("--scaling-pod-image", default=defaults.image)
    parser.add_argument("--scale-adjust-namespace", default=defaults.namespace)
    parser.add_argument("--scaling-pod-app-label", default=defaults.app_label)
    parser.add_argument("--scaling-pod-service-account", default=defaults.service_account)
    parser.add_argument("--gpu-memory-to-fraction-ratio", type=float, default=defaults.memory_ratio)


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Return the grouping settings from parsed flags."""
    return Settings(
        scheduler_name=options["scheduler_name"],
        queue_label=options["queue_label_key"],
        node_pool_label=options["nodepool_label_key"],
        search_legacy=options["search_legacy_pg"] == "true",
        knative_gang=options["knative_gang_schedule"] == "true",
        karta_fallback=options["generic_karta_fallback"] == "true",
    )


def options_of(options: Mapping[str, Any], *, keeps_status: bool) -> Options:
    """Return the options of the controllers from parsed flags.

    Raises
    ------
    ValueError : a flag that cannot be read; the message names it
    """
    selector = parse_selector(options["pod_label_selector"])
    return Options(
        settings=settings_of(options),
        namespace=options["namespace"],
        pod_selector=",".join(f"{key}={value}" for key, value in selector.items()),
        namespace_labels=parse_selector(options["namespace_label_selector"]),
        defaults_config_map=(
            options["default_priorities_configmap_namespace"],
            options["default_priorities_configmap_name"],
        ),
        concurrency=options["max_concurrent_reconciles"],
        has_leader_election=options["leader_elect"],
        groups_pods=options.get("group_pods") != "false",
        keeps_status=keeps_status,
        keeps_group_status=options.get("podgroup_status") != "false",
        keeps_queue_status=options.get("queue_status") != "false",
        adjuster=_adjuster(options) if options.get("node_scale_adjuster") else None,
        metrics_address=_address(options["metrics_bind_address"]),
        metrics_namespace=options.get("metrics_namespace", "kai"),
        metric_labels=parse_pairs(
            options.get("queue_label_to_metric_label", ""), "queue-label-to-metric-label"
        ),
        metric_defaults=parse_pairs(
            options.get("queue_label_to_default_metric_value", ""),
            "queue-label-to-default-metric-value",
        ),
    )


def parse_selector(text: str) -> dict[str, str]:
    """Return the pairs of `k=v,k2=v2`; blanks are trimmed and malformed pairs dropped."""
    pairs = (part.split("=", 1) for part in text.split(",") if "=" in part)
    return {key.strip(): value.strip() for key, value in pairs if key.strip()}


def _adjuster(options: Mapping[str, Any]) -> AdjusterSettings:
    return AdjusterSettings(
        image=options["scaling_pod_image"],
        namespace=options["scale_adjust_namespace"],
        scheduler_name=options["scheduler_name"],
        app_label=options["scaling_pod_app_label"],
        service_account=options["scaling_pod_service_account"],
        memory_ratio=options["gpu_memory_to_fraction_ratio"],
    )


def _address(text: str) -> tuple[str, int] | None:
    if not text or text == "0":
        return None
    host, sign, port = text.rpartition(":")
    if not sign or not port.isdigit():
        raise ValueError(f"--metrics-bind-address: expected host:port, got {text!r}")
    return host or "0.0.0.0", int(port)
