"""All actions by name, made anew for each cycle."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.core.actions.allocate import AllocateAction
from scheduler.core.actions.base import Action
from scheduler.core.decisions import ActionName

ACTIONS: dict[ActionName, Callable[[], Action]] = {
    ActionName.ALLOCATE: AllocateAction,
}
