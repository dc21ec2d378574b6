"""The factory of each action by its name; every cycle makes its own actions."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.core.actions.allocate import AllocateAction
from scheduler.core.actions.base import Action
from scheduler.core.actions.consolidate import ConsolidateAction
from scheduler.core.actions.evict_stale import EvictStaleAction
from scheduler.core.actions.preempt import PreemptAction
from scheduler.core.actions.reclaim import ReclaimAction
from scheduler.core.decisions import ActionName

ACTIONS: dict[ActionName, Callable[[], Action]] = {
    ActionName.ALLOCATE: AllocateAction,
    ActionName.CONSOLIDATION: ConsolidateAction,
    ActionName.RECLAIM: ReclaimAction,
    ActionName.PREEMPT: PreemptAction,
    ActionName.STALE_GANG_EVICTION: EvictStaleAction,
}
