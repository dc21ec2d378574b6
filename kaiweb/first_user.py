"""The first user of an installation, and whether its first password is still in use."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.contrib.auth.models import User

from kube.process.files import write_private

NAME = "admin"
FILE = "admin-password"
PASSWORD_VARIABLE = "KAIWEB_ADMIN_PASSWORD"


def create_first_user(home: Path) -> Path | None:
    """Create `admin` unless there is a user; return the file of its random password.

    A password in `KAIWEB_ADMIN_PASSWORD` is used instead, and written nowhere: in a cluster it is in a Secret.
    """
    if User.objects.exists():
        return None
    chosen_password = os.environ.get(PASSWORD_VARIABLE)
    if chosen_password:
        User.objects.create_superuser(NAME, password=chosen_password)
        return None
    password = secrets.token_urlsafe(12)
    file = home / FILE
    write_private(file, password + "\n")
    User.objects.create_superuser(NAME, password=password)
    return file


def first_password(home: Path) -> str | None:
    """Return the generated password as long as it opens the account; None once it was changed."""
    user = User.objects.filter(username=NAME).first()
    file = home / FILE
    if user is None or not file.exists():
        return None
    password = file.read_text().strip()
    return password if user.check_password(password) else None
