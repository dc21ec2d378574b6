"""`kaiweb snapshot save|replay|explain`: a cycle's input in a file that KAI's tool reads too."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kube.errors import NotFoundError
from kube.objects.config import Config, SchedulingShard
from kube.resources import CONFIGS, SHARDS
from queues.cluster import gateway
from scheduler.core.errors import CoreError
from scheduler.load.archive import ArchiveError, read_archive, read_objects, write_archive
from scheduler.settings.shard import CONFIG_NAME, settings_of
from scheduler.tools.replay import decision_lines, explanation, replay, timings


class Command(BaseCommand):
    help = "Save the cluster as one cycle sees it; run a saved cycle; say why workloads wait in it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the three verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        save = verbs.add_parser("save", help="write snapshot.zip")
        save.add_argument("--filename", type=Path, default=Path("snapshot.zip"))
        save.add_argument("--shard", default="default")
        play = verbs.add_parser("replay", help="run one cycle on a file; prints timings as JSON")
        play.add_argument("--filename", type=Path, required=True)
        play.add_argument("--decisions", action="store_true", help="print every decision")
        explain = verbs.add_parser("explain", help="say why workloads wait")
        explain.add_argument("--filename", type=Path, required=True)
        explain.add_argument(
            "workload", nargs="?", default="", help="namespace/name of a pod group"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the verb."""
        if options["verb"] == "save":
            self._save(options["filename"], options["shard"])
            return
        try:
            done = replay(read_archive(options["filename"]))
        except (ArchiveError, CoreError, OSError) as error:
            raise CommandError(str(error)) from error
        if options["verb"] == "explain":
            self.stdout.write("\n".join(explanation(done, options["workload"])))
            return
        if options["decisions"]:
            self.stdout.write("\n".join(decision_lines(done)))
        self.stdout.write(json.dumps(timings(done)))

    def _save(self, path: Path, shard: str) -> None:
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
        objects = read_objects(api, settings.params)
        write_archive(path, objects, settings, time.time())
        counts = ", ".join(f"{len(items)} {key}" for key, items in objects.items() if items)
        self.stdout.write(f"{path}: {counts}")
