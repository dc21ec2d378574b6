"""Connections to the broker, which may be one server or a group with Sentinels (`queues.broker_address`)."""

from __future__ import annotations

from typing import Any

import redis
from redis.sentinel import Sentinel

from queues.broker_address import sentinel_group


def connect_broker(url: str, **options: Any) -> redis.Redis:
    """Return a client of the broker; it connects at its first command.

    Parameters
    ----------
    options : of the connections, e.g. `socket_timeout`

    Raises
    ------
    ValueError : the URL cannot be used
    """
    group = sentinel_group(url)
    if group is None:
        client: redis.Redis = redis.Redis.from_url(url, **options)
        return client
    make_sentinel: Any = Sentinel  # it has no types
    sentinel = make_sentinel(list(group.sentinels), sentinel_kwargs=group.sentinel_options)
    primary: redis.Redis = sentinel.master_for(
        group.master, db=group.database, password=group.password or None, **options
    )
    return primary
