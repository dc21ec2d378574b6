"""How a user wants to see the dashboard; it follows the user from browser to browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction

from queues.models import UserPreferences


def preferences_of(user: User | AnonymousUser) -> dict[str, Any]:
    """Return what the user has chosen; what is missing has its default."""
    if not isinstance(user, User):
        return {}
    row = UserPreferences.objects.filter(user=user).first()
    return dict(row.values) if row is not None else {}


def choose(user: User, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Store some choices beside the others of the user; return all."""
    with transaction.atomic():
        row, _ = UserPreferences.objects.select_for_update().get_or_create(user=user)
        row.values = {**row.values, **changes}
        row.save()
    return dict(row.values)
