"""`kaiweb group FILE...`: print the pod groups that manifests would get, without a cluster or a database."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kube.keys import NODE_POOL, QUEUE, SCHEDULER_NAME
from queues.grouping.base import Json, Settings, dig, dig_list, full_name
from queues.grouping.offline.manifests import ManifestError, read_distinct_manifests
from queues.grouping.offline.report import GroupReport, group_objects


class Command(BaseCommand):
    """Print the pod groups of a set of manifests."""

    help = (
        "Print the pod groups that manifests would get, offline. Workloads without pods get the pods their controller "
        "would make; where only an operator knows them, a note says so. Exit code 0: the report stands, pods that "
        "cannot be grouped are in it; 1: a file is no manifest; 2: wrong arguments."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files",
            nargs="+",
            type=Path,
            metavar="FILE",
            help="YAML or JSON manifests, a folder of them, or - for standard input",
        )
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="machine-readable output"
        )
        parser.add_argument("--scheduler-name", default=SCHEDULER_NAME)
        parser.add_argument("--queue-label-key", default=QUEUE)
        parser.add_argument("--nodepool-label-key", default=NODE_POOL)
        parser.add_argument("--knative-gang-schedule", default="true", choices=("true", "false"))
        parser.add_argument("--search-legacy-pg", default="true", choices=("true", "false"))
        parser.add_argument("--generic-karta-fallback", default="true", choices=("true", "false"))
        parser.add_argument("--default-priorities-configmap-name", default="")
        parser.add_argument("--default-priorities-configmap-namespace", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        settings = Settings(
            scheduler_name=options["scheduler_name"],
            queue_label=options["queue_label_key"],
            node_pool_label=options["nodepool_label_key"],
            search_legacy=options["search_legacy_pg"] == "true",
            knative_gang=options["knative_gang_schedule"] == "true",
            karta_fallback=options["generic_karta_fallback"] == "true",
        )
        config_map = (
            options["default_priorities_configmap_namespace"],
            options["default_priorities_configmap_name"],
        )
        try:
            objects = read_distinct_manifests(options["files"])
        except ManifestError as error:
            raise CommandError(str(error)) from error
        report = group_objects(objects, settings, defaults_config_map=config_map)
        text = json.dumps(as_json(report), indent=2) if options["as_json"] else as_text(report)
        self.stdout.write(text)


def as_json(report: GroupReport) -> Json:
    """Return the machine-readable report; absent values are null."""
    pods: Json = {}
    for name, result in report.pods.items():
        pods[name] = {
            "podGroup": result.pod_group or None,
            "subGroup": result.sub_group or None,
            "error": result.error or None,
        }
        if result.skipped:
            pods[name]["skipped"] = result.skipped
    body: Json = {"podGroups": list(report.pod_groups), "pods": pods}
    return {**body, "notes": dict(report.notes)} if report.notes else body


def as_text(report: GroupReport) -> str:
    """Return the report for people: each group with its tree and its pods, then what was not grouped."""
    lines: list[str] = []
    members: dict[str, list[str]] = {}
    for pod, result in report.pods.items():
        place = f"  in {result.sub_group}" if result.sub_group else ""
        group_name = f"{pod.partition('/')[0]}/{result.pod_group}"
        members.setdefault(group_name, []).append(f"    pod {pod}{place}")
    for group in report.pod_groups:
        lines += [*_group_lines(group), *members.get(full_name(group), ())]
    for pod, result in report.pods.items():
        if result.error:
            lines.append(f"{pod}: error: {result.error}")
        elif result.skipped:
            lines.append(f"{pod}: left alone: {result.skipped}")
    lines += [f"{name}: {note}" for name, note in report.notes.items()]
    if not report.pods and not report.notes:
        lines.append("no workloads or pods found")
    return "\n".join(lines)


def _group_lines(group: Json) -> list[str]:
    spec = group["spec"]
    owner = dig_list(group, "metadata", "ownerReferences")
    lines = [
        f"{full_name(group)}  queue {spec['queue']}  {_minimum(spec)}  priority class {spec['priorityClassName']}"
        + (f"  {spec['preemptibility']}" if spec.get("preemptibility") else "")
        + (f"  owner {owner[0]['kind']}/{owner[0]['name']}" if owner else "")
    ]
    topology = spec.get("topologyConstraint")
    if topology:
        lines.append(f"    topology {_topology(topology)}")
    for sub in spec.get("subGroups", []):
        place = f"  below {sub['parent']}" if sub.get("parent") else ""
        where = (
            f"  topology {_topology(sub['topologyConstraint'])}"
            if sub.get("topologyConstraint")
            else ""
        )
        lines.append(f"    subgroup {sub['name']}  {_minimum(sub)}{place}{where}")
    return lines


def _minimum(spec: Json) -> str:
    if dig(spec, "minSubGroup") is not None:
        return f"min subgroups {spec['minSubGroup']}"
    return f"min member {spec.get('minMember', 0)}"


def _topology(constraint: Json) -> str:
    parts = [constraint.get("topology", "")]
    for word, key in (
        ("required", "requiredTopologyLevel"),
        ("preferred", "preferredTopologyLevel"),
    ):
        if constraint.get(key):
            parts.append(f"{word} {constraint[key]}")
    return ", ".join(parts)
