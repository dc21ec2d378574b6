"""`kaiweb bootstrap`: prepare the database and the cluster. It is safe to run at every start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from kaiweb import install
from kaiweb.first_user import create_first_user
from kube.errors import KubeError
from kube.process.files import private_folder, restrict
from queues import live
from queues.cluster import gateway
from scheduler.models import Shard


class Command(BaseCommand):
    """Migrate, create the first user, install the custom resources and the default objects."""

    help = "Prepare the database and the cluster (idempotent)."
    # System checks load every view, and a start should not wait for that; CI runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the option that leaves the cluster out."""
        parser.add_argument("--no-cluster", action="store_true", help="prepare only the database")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the steps in the order in which they need each other."""
        restrict(private_folder(Path(settings.KAIWEB_HOME)))
        call_command("migrate", interactive=False, verbosity=0)
        live.epoch()
        for name in settings.KAIWEB_SHARDS:
            Shard.objects.get_or_create(name=name)
        self._first_user()
        if not options["no_cluster"]:
            self._cluster()

    def _first_user(self) -> None:
        file = create_first_user(Path(settings.KAIWEB_HOME))
        if file:
            self.stdout.write(f"created user 'admin'; the password is in {file}")

    def _cluster(self) -> None:
        deploy = Path(settings.KAIWEB_DEPLOY)
        try:
            install.apply_definitions(gateway(), install.documents(deploy / "crds"))
            created = install.create_missing(gateway(), install.documents(deploy / "defaults"))
        except (install.InstallError, KubeError) as error:
            raise CommandError(f"cannot prepare the cluster: {error}") from error
        for line in created:
            self.stdout.write(f"created {line}")
