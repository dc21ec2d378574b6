"""`kaiweb token USER NAME`: create an API token without a log-in, for example the first one of a pipeline."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from kaiweb.api.errors import Problem
from kaiweb.api.token_request import read_token_request
from kaiweb.items.visibility import EVERYTHING
from queues.access.rights import READ, SCOPES, Rights
from queues.editing.token_writes import create_token
from queues.editing.write_requests import WriteRequest


class Command(BaseCommand):
    """Whoever may run this has the database anyway, so it asks for no log-in."""

    help = "Create an API token of a user and print its secret, which is not shown again."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare what the token may do, where, from where, and how long."""
        parser.add_argument("user", help="the account whose rights it has at most")
        parser.add_argument("name", help="what uses it, for example ci-team-a")
        parser.add_argument("--scope", action="append", choices=SCOPES, help=f"default: {READ}")
        parser.add_argument("--subtree", help="only below this queue")
        parser.add_argument(
            "--network", action="append", help="only from this network, such as 10.0.0.0/8"
        )
        parser.add_argument("--days", type=int, help="default: as long as the settings allow")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the secret and nothing else."""
        now, days = timezone.now(), options["days"]
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"there is no user '{options['user']}' who may log in")
        body = {
            "name": options["name"],
            "scopes": options["scope"] or [READ],
            "subtree": options["subtree"],
            "networks": options["network"] or [],
            "expiresAt": None if days is None else (now + timedelta(days=days)).isoformat(),
        }
        rights = Rights(username="kaiweb", display_name="kaiweb", kind="session", grants=())
        write = WriteRequest(rights=rights, now=now, reason="the command `kaiweb token`")
        try:
            token = read_token_request(body, now, EVERYTHING)
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        self.stdout.write(create_token(user, token, write)[1])
