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
    ticks["trim-live-log"] = {
        "task": "queues.tasks.trim_live_log",
        "schedule": 60.0,
        "options": {"queue": "default", "expires": 55.0},
    }
    ticks["settle-changes"] = {
        "task": "queues.tasks.settle_changes",
        "schedule": 20.0,
        "options": {"queue": "default", "expires": 18.0},
    }
    ticks["settle-change-sets"] = {
        "task": "kaiweb.tasks.settle_change_sets",
        "schedule": 20.0,
        "options": {"queue": "default", "expires": 18.0},
    }
    ticks["trim-history"] = {
        "task": "kaiweb.tasks.trim_history",
        "schedule": 600.0,
        "options": {"queue": "default", "expires": 500.0},
    }
    ticks["collect-notifications"] = {
        "task": "kaiweb.notifications.tasks.collect",
        "schedule": 30.0,
        "options": {"queue": "default", "expires": 25.0},
    }
    ticks["deliver-notifications"] = {
        "task": "kaiweb.notifications.tasks.deliver",
        "schedule": 5.0,
        "options": {"queue": "default", "expires": 4.0},
    }
    if KAIWEB_USAGE_SAMPLE_S:
        ticks["sample-usage"] = {
            "task": "kaiweb.usage.tasks.sample",
            "schedule": float(KAIWEB_USAGE_SAMPLE_S),
            "options": {"queue": "default", "expires": 0.75 * KAIWEB_USAGE_SAMPLE_S},
        }
        ticks["close-usage-days"] = {
            "task": "kaiweb.usage.tasks.close_days",
            "schedule": 900.0,
            "options": {"queue": "default", "expires": 800.0},
        }
    if KAIWEB_UTILISATION_SAMPLE_S:
        ticks["read-utilisation"] = {
            "task": "kaiweb.utilisation.tasks.read",
            "schedule": float(KAIWEB_UTILISATION_SAMPLE_S),
            "options": {"queue": "default", "expires": 0.75 * KAIWEB_UTILISATION_SAMPLE_S},
        }
    return ticks


CELERY_BEAT_SCHEDULE = beat_schedule(env.shards(), tick_s=TICK_S)
CELERY_BEAT_SCHEDULER = "kaiweb.beat:ShardClock"
