"""The rules of plugins that concern one class of tasks, sorted by how long each answer stays valid.

Computed once per class and session: which filters and scores concern it at all, and the sum of those that
depend only on the class and the node's description.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Bools, Floats
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.session.hooks import FitRule, NodeFilter, NodeScore, PlaceWait, PreCheck, Scope
from scheduler.core.session.session import Session

#: What answers of scope CLASS may depend on, besides the node; see `Scope`.
StaticKey = tuple[tuple[object, ...], str, str]
Static = tuple[Bools, Floats]


class ClassRules:
    """The filters, scores and checks that concern one class.

    Attributes
    ----------
    filters, scores : all that concern it, in the order of plugins
    static_mask, static_scores : shape (all nodes,); answers of scope CLASS together, shared between
        classes that differ in amounts only
    node_filters, node_scores : answers that change when a node is touched
    cluster_filters, cluster_scores : answers that anything may change
    fit_rules : rules that change what must be free
    waits : rules by which a place can only be used once another task has left it
    is_volatile : no answer about this class may be kept between two placements
    """

    __slots__ = (
        "checks",
        "cluster_filters",
        "cluster_scores",
        "filters",
        "fit_rules",
        "is_volatile",
        "node_filters",
        "node_scores",
        "scores",
        "static_mask",
        "static_scores",
        "waits",
    )

    def __init__(
        self,
        session: Session,
        task_class: TaskClass,
        task: int,
        static_cache: dict[StaticKey, Static],
    ) -> None:
        hooks = session.hooks
        self.filters: list[NodeFilter] = [f for f in hooks.filters if f.concerns(task_class)]
        scores = self.scores = [s for s in hooks.scores if s.concerns(task_class)]
        self.checks: list[PreCheck] = [c for c in hooks.checks if c.concerns(task_class)]
        self.node_filters = [f for f in self.filters if f.scope is Scope.NODE]
        self.cluster_filters = [f for f in self.filters if f.scope is Scope.CLUSTER]
        self.node_scores = [s for s in scores if s.scope is Scope.NODE]
        self.cluster_scores = [s for s in scores if s.scope is Scope.CLUSTER]
        self.fit_rules: list[FitRule] = [r for r in hooks.fit_rules if r.concerns(task_class)]
        self.is_volatile = bool(self.cluster_filters or self.cluster_scores or self.fit_rules)
        self.waits: list[PlaceWait] = [w for w in hooks.waits if w.concerns(task_class)]
        key = (task_class.kind, task_class.namespace, task_class.nominated_node)
        if key not in static_cache:
            static_cache[key] = self._static(session, task_class, task, scores)
        self.static_mask, self.static_scores = static_cache[key]

    def _static(
        self, session: Session, task_class: TaskClass, task: int, scores: list[NodeScore]
    ) -> Static:
        mask: Bools = np.ones(len(session.state.nodes), dtype=np.bool_)
        for node_filter in self.filters:
            if node_filter.scope is Scope.CLASS:
                mask &= node_filter.mask(task, task_class)
        total: Floats = np.zeros(len(session.state.nodes))
        for score in scores:
            if score.scope is Scope.CLASS:
                total += score.scores(task, task_class, session.all_nodes)
        return mask, total
