"""Settings of Channels: wake-ups of the live sockets by publish and subscribe on the broker."""

from __future__ import annotations

from typing import Any

from kaiweb.settings import env

CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [env.redis_url()]},
    }
}
