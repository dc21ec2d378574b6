"""`kaiweb snapshot save|replay|explain|anonymise|shrink`: a cycle's input in a file that KAI's tool reads too."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kube.errors import NotFoundError
from kube.objects.config import Config, SchedulingShard
from kube.resources import CONFIGS, SHARDS
from queues.cluster import gateway
from scheduler.core.errors import CoreError
from scheduler.load.archive import (
    ArchiveError,
    archive_of,
    body_of,
    read_archive,
    read_body,
    read_objects,
    write_body,
)
from scheduler.settings.shard import CONFIG_NAME, settings_of
from scheduler.tools.replay import decision_lines, explanation, replay, timings
from scheduler.tools.smallest import MAX_TRIALS
from scheduler.tools.snapshots.anonymise import anonymise
from scheduler.tools.snapshots.names import UnknownWorkloadError, pod_group_named
from scheduler.tools.snapshots.scenario import NotAScenarioError, scenario_of
from scheduler.tools.snapshots.shrink import counts, shrink

REFUSALS = (ArchiveError, CoreError, UnknownWorkloadError, NotAScenarioError, OSError)

WORKLOAD = "namespace/name of a pod group, of its owner (a Job, say), or of one of its pods"


class Command(BaseCommand):
    help = (
        "Save the cluster as one cycle sees it; run a saved cycle; say why workloads wait in it;"
        " replace its names; reduce it to what one workload needs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        save_parser = verbs.add_parser("save", help="write snapshot.zip")
        save_parser.add_argument("--filename", type=Path, default=Path("snapshot.zip"))
        save_parser.add_argument("--shard", default="default")
        save_parser.add_argument("--anonymise", action="store_true", help="replace all names")
        replay_parser = verbs.add_parser(
            "replay", help="run one cycle on a file; prints timings as JSON"
        )
        replay_parser.add_argument("--filename", type=Path, required=True)
        replay_parser.add_argument("--decisions", action="store_true", help="print every decision")
        explain_parser = verbs.add_parser("explain", help="say why workloads wait")
        explain_parser.add_argument("--filename", type=Path, required=True)
        explain_parser.add_argument("workload", nargs="?", default="", help=WORKLOAD)
        anonymise_parser = verbs.add_parser("anonymise", help="replace all names in a file")
        anonymise_parser.add_argument("--filename", type=Path, required=True)
        anonymise_parser.add_argument("--output", type=Path, required=True)
        shrink_parser = verbs.add_parser(
            "shrink", help="keep only what one workload needs to meet the same outcome"
        )
        shrink_parser.add_argument("workload", help=WORKLOAD)
        shrink_parser.add_argument("--filename", type=Path, required=True)
        shrink_parser.add_argument("--output", type=Path, required=True)
        shrink_parser.add_argument(
            "--scenario", type=Path, help="also write it as a scenario, as JSON"
        )
        shrink_parser.add_argument(
            "--trials", type=int, default=MAX_TRIALS, help="cycles to run at most"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the verb."""
        verb = getattr(self, f"_{options['verb']}")
        try:
            verb(**{name: options[name] for name in OPTIONS_OF_VERB[options["verb"]]})
        except REFUSALS as error:
            raise CommandError(str(error)) from error

    def _save(self, filename: Path, shard: str, anonymise: bool) -> None:
        api = gateway()
        try:
            shard_object = api.get(SHARDS, shard, as_type=SchedulingShard)
        except NotFoundError:
            shard_object = None
        try:
            config = api.get(CONFIGS, CONFIG_NAME, as_type=Config)
        except NotFoundError:
            config = None
        settings = settings_of(shard, shard_object, config)
        body: Mapping[str, Any] = body_of(read_objects(api, settings.params), settings, time.time())
        if anonymise:
            body = self._without_names(body)
        write_body(filename, body)
        self.stdout.write(f"{filename}: {counts(body)}")

    def _replay(self, filename: Path, decisions: bool) -> None:
        replayed = replay(read_archive(filename))
        if decisions:
            self.stdout.write("\n".join(decision_lines(replayed)))
        self.stdout.write(json.dumps(timings(replayed)))

    def _explain(self, filename: Path, workload: str) -> None:
        archive = read_archive(filename)
        key = pod_group_named(archive.view, workload) if workload else ""
        self.stdout.write("\n".join(explanation(replay(archive), key)))

    def _anonymise(self, filename: Path, output: Path) -> None:
        body = self._without_names(read_body(filename))
        write_body(output, body)
        self.stdout.write(f"{output}: {counts(body)}")

    def _without_names(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the snapshot with all names replaced; warn if a cycle on it makes more or fewer decisions."""
        renamed = anonymise(body)
        before, after = (len(replay(archive_of(each)).decisions) for each in (body, renamed))
        if before != after:
            self.stderr.write(
                f"a cycle on the anonymised snapshot makes {after} decisions instead of {before}:"
                " some rule reads a text that was replaced"
            )
        return renamed

    def _shrink(
        self, workload: str, filename: Path, output: Path, scenario: Path | None, trials: int
    ) -> None:
        body = read_body(filename)
        key = pod_group_named(archive_of(body).view, workload)
        small, outcome = shrink(body, key, trials)
        write_body(output, small)
        self.stdout.write(f"{workload}: {outcome.as_text()}")
        self.stdout.write(f"{filename}: {counts(body)}")
        self.stdout.write(f"{output}: {counts(small)}")
        if scenario is not None:
            title = f"{workload}: {outcome.as_text()}"
            document = scenario_of(replay(archive_of(small)), scenario.stem, title)
            scenario.write_text(json.dumps(document, indent=1) + "\n")
            self.stdout.write(f"{scenario}: judge it with `kaiweb conformance {scenario.parent}`")


#: The options that the method of each verb takes.
OPTIONS_OF_VERB = {
    "save": ("filename", "shard", "anonymise"),
    "replay": ("filename", "decisions"),
    "explain": ("filename", "workload"),
    "anonymise": ("filename", "output"),
    "shrink": ("workload", "filename", "output", "scenario", "trials"),
}
