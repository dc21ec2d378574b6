"""The user that a request acts as, and the groups that have a built-in meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class User:
    """Who sends a request: an authenticated user, or `ANONYMOUS`."""

    name: str
    groups: frozenset[str]
    uid: str = ""

    @property
    def info(self) -> dict[str, Any]:
        """Return the `userInfo` of reviews and admission requests."""
        info: dict[str, Any] = {"username": self.name, "groups": sorted(self.groups)}
        if self.uid:
            info["uid"] = self.uid
        return info


ANONYMOUS = User("system:anonymous", frozenset({"system:unauthenticated"}))
