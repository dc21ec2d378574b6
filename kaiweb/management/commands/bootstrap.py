"""`kaiweb bootstrap`: prepare the database and the cluster. It is safe to run at every start."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from kaiweb import install
from kaiweb.first_user import create_first_user
from kaiweb.health.checks import MigrationsCheck
from kube.errors import KubeError
from kube.process.files import private_folder, restrict
from queues import live
from queues.cluster import gateway
from scheduler.models import Shard

#: How long `--wait` waits, and how often it looks.
WAIT_S = 600.0
POLL_S = 2.0


class Command(BaseCommand):
    """Migrate, create the first user, install the custom resources and the default objects."""

    help = "Prepare the database and the cluster (idempotent)."
    # System checks load every view, and a start should not wait for that; CI runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options that leave something out."""
        parser.add_argument("--no-cluster", action="store_true", help="prepare only the database")
        parser.add_argument(
            "--no-defaults", action="store_true", help="create no default queues, shard and Config"
        )
        parser.add_argument(
            "--wait",
            action="store_true",
            help="only make the state folder, and wait until another process has prepared the database",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the steps in the order in which they need each other."""
        home = private_folder(Path(settings.KAIWEB_HOME))
        if options["wait"]:
            wait_for_migrations(MigrationsCheck())
            return
        restrict(home)
        call_command("migrate", interactive=False, verbosity=0)
        live.epoch()
        for name in settings.KAIWEB_SHARDS:
            Shard.objects.get_or_create(name=name)
        self._first_user()
        if not options["no_cluster"]:
            self._cluster(has_defaults=not options["no_defaults"])

    def _first_user(self) -> None:
        file = create_first_user(Path(settings.KAIWEB_HOME))
        if file:
            self.stdout.write(f"created user 'admin'; the password is in {file}")

    def _cluster(self, *, has_defaults: bool) -> None:
        deploy = Path(settings.KAIWEB_DEPLOY)
        try:
            install.apply_definitions(gateway(), install.documents(deploy / "crds"))
            defaults = install.documents(deploy / "defaults") if has_defaults else []
            created = install.create_missing(gateway(), defaults)
        except (install.InstallError, KubeError) as error:
            raise CommandError(f"cannot prepare the cluster: {error}") from error
        for line in created:
            self.stdout.write(f"created {line}")


def wait_for_migrations(
    fault: Callable[[], str],
    *,
    timeout_s: float = WAIT_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Return once all migrations are applied: another process, which runs `bootstrap`, applies them.

    Raises
    ------
    CommandError : they are not after `timeout_s`
    """
    deadline = clock() + timeout_s
    while text := fault():
        if clock() >= deadline:
            raise CommandError(f"not ready after {timeout_s:.0f} s: {text}")
        connection.close()
        sleep(POLL_S)
