"""Write the file with which the commands of the terminal find this installation, private to its owner."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from kaiweb.first_user import NAME
from kaiweb.terminal.access import FILE
from kube.process.files import write_private
from queues.access import tokens
from queues.access.rights import ADMIN
from queues.models import ApiToken

TOKEN_NAME = "terminal on this machine"
#: A token that ends sooner than this is replaced at the start.
MIN_LIFETIME = timedelta(days=7)


def write_terminal_access(home: Path, url: str) -> Path | None:
    """Write address and token of the first user, unless the file has both already; None without that user.

    A token that is replaced is revoked, so that at most one is valid.
    """
    user = User.objects.filter(username=NAME, is_active=True, is_superuser=True).first()
    file, now = home / FILE, timezone.now()
    if user is None:
        file.unlink(missing_ok=True)
        return None
    if _is_usable(file, url, now):
        return file
    ApiToken.objects.filter(user=user, name=TOKEN_NAME, revoked_at=None).update(revoked_at=now)
    days: int = settings.KAIWEB_TOKEN_MAX_DAYS
    _token, secret = tokens.create(
        user=user,
        name=TOKEN_NAME,
        scopes=[ADMIN],
        subtree="",
        expires_at=now + timedelta(days=days) if days else None,
        now=now,
    )
    write_private(file, json.dumps({"url": url, "token": secret}) + "\n")
    return file


def _is_usable(file: Path, url: str, now: datetime) -> bool:
    try:
        content = json.loads(file.read_text())
        token = tokens.find(str(content["token"]), now)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if token is None or content.get("url") != url:
        return False
    return token.expires_at is None or token.expires_at - now > MIN_LIFETIME
