"""Settings of Celery: one broker, one queue for each shard, ticks that expire instead of piling up."""

from __future__ import annotations

from typing import Any

from kaiweb.settings import env
from kube.keys import SHARD_TASK_PREFIX
from queues.broker_address import sentinel_group

REDIS_URL = env.redis_url()
TICK_S = 1.0
# Seconds between two samples of the usage history; 0: no history.
KAIWEB_USAGE_SAMPLE_S = env.number("KAIWEB_USAGE_SAMPLE_S", 20)
# Seconds between two readings of the utilisation of GPUs; 0: none.
KAIWEB_UTILISATION_SAMPLE_S = env.number("KAIWEB_UTILISATION_SAMPLE_S", 30)

_sentinels = sentinel_group(REDIS_URL)
CELERY_BROKER_URL = _sentinels.celery_url() if _sentinels else REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Messages of a worker that died are delivered again after this time; ticks have expired by then.
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    "visibility_timeout": 60,
    "health_check_interval": 10,
}
if _sentinels:
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "master_name": _sentinels.master,
        "sentinel_kwargs": _sentinels.sentinel_options,
    }
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "binder.tasks.*": {"queue": "binding"},
    "kaiweb.tasks.run_simulation": {"queue": "simulations"},
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"


def shard_queue(shard: str) -> str:
    """Return the Celery queue of one shard's scheduling worker."""
    return f"{SHARD_TASK_PREFIX}{shard}"


def _upkeep(task: str, every_s: float, *, expires_s: float) -> dict[str, Any]:
    """Return the entry of a periodic task of the worker for everything that is not scheduling."""
    return {
        "task": task,
        "schedule": every_s,
        "options": {"queue": CELERY_TASK_DEFAULT_QUEUE, "expires": expires_s},
    }


def beat_schedule(shards: list[str], *, tick_s: float) -> dict[str, dict[str, Any]]:
    """Return the periodic tasks: a tick a second for each shard, and the upkeep of the database."""
    ticks: dict[str, dict[str, Any]] = {
        f"cycle-{shard}": {
            "task": "scheduler.tasks.run_cycle",
            "schedule": tick_s,
            "args": [shard],
            "options": {"queue": shard_queue(shard), "expires": tick_s},
        }
        for shard in shards
    }
    # The binder watches its work; the sweep starts a binder whose start has failed.
    ticks["sweep-bind-requests"] = {
        "task": "binder.tasks.sweep",
        "schedule": 5.0,
        "options": {"queue": "binding", "expires": 4.0},
    }
    ticks["trim-live-log"] = _upkeep("queues.tasks.trim_live_log", 60.0, expires_s=55.0)
    ticks["settle-changes"] = _upkeep("queues.tasks.settle_changes", 20.0, expires_s=18.0)
    ticks["settle-change-sets"] = _upkeep("kaiweb.tasks.settle_change_sets", 20.0, expires_s=18.0)
    ticks["trim-history"] = _upkeep("kaiweb.tasks.trim_history", 600.0, expires_s=500.0)
    ticks["collect-notifications"] = _upkeep(
        "kaiweb.notifications.tasks.collect", 30.0, expires_s=25.0
    )
    ticks["deliver-notifications"] = _upkeep(
        "kaiweb.notifications.tasks.deliver", 5.0, expires_s=4.0
    )
    if KAIWEB_USAGE_SAMPLE_S:
        ticks["sample-usage"] = _upkeep(
            "kaiweb.usage.tasks.sample",
            float(KAIWEB_USAGE_SAMPLE_S),
            expires_s=0.75 * KAIWEB_USAGE_SAMPLE_S,
        )
        ticks["close-usage-days"] = _upkeep("kaiweb.usage.tasks.close_days", 900.0, expires_s=800.0)
    if KAIWEB_UTILISATION_SAMPLE_S:
        ticks["read-utilisation"] = _upkeep(
            "kaiweb.utilisation.tasks.read",
            float(KAIWEB_UTILISATION_SAMPLE_S),
            expires_s=0.75 * KAIWEB_UTILISATION_SAMPLE_S,
        )
    return ticks


CELERY_BEAT_SCHEDULE = beat_schedule(env.shards(), tick_s=TICK_S)
CELERY_BEAT_SCHEDULER = "kaiweb.beat:ShardClock"
