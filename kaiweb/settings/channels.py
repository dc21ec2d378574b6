"""Settings of Channels: wake-ups of the live sockets by publish and subscribe on the broker."""

from __future__ import annotations

from typing import Any

from kaiweb.settings import env
from queues.broker_address import sentinel_group

_url = env.redis_url()
_sentinels = sentinel_group(_url)
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [_sentinels.channels_host() if _sentinels else _url]},
    }
}
