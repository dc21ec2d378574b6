"""Ask the API server whose token it is, and whether it was made for kaiweb.

A token for another audience is refused, also one that the API server itself would take: otherwise every program to
which somebody hands a token could act as that person here, and kaiweb as them in the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube.resources import TOKEN_REVIEWS
from queues.cluster import gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a token belongs to, as the cluster knows them."""

    username: str
    groups: frozenset[str]


def review(token: str, audiences: Sequence[str]) -> Identity | None:
    """Return the owner of a token that was made for one of the audiences; None for any other token.

    Raises
    ------
    KubeError : the API server does not answer, or our account may not ask it
    """
    body = {
        "apiVersion": TOKEN_REVIEWS.api_version,
        "kind": TOKEN_REVIEWS.kind,
        "spec": {"token": token, "audiences": list(audiences)},
    }
    status = gateway().create(TOKEN_REVIEWS, body).get("status") or {}
    # A server that knows nothing of audiences names none, and has not looked at them.
    is_for_us = bool(set(status.get("audiences") or ()) & set(audiences))
    user = status.get("user") or {}
    username = user.get("username")
    if not status.get("authenticated") or not is_for_us or not username:
        return None
    return Identity(username=username, groups=frozenset(user.get("groups") or ()))
