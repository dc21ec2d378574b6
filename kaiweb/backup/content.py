"""Which rows a backup holds: all but those that the cluster or a restart brings back."""

from __future__ import annotations

from typing import Any

from django.apps import apps

#: Rows that are not saved, by app; None: no row of the app.
LEFT_OUT: dict[str, frozenset[str] | None] = {
    # Made by migrate.
    "contenttypes": None,
    "auth": frozenset({"permission"}),
    # Log-ins end with the database.
    "sessions": None,
    # Copies of the cluster, which the mirror fills again, and positions of live sockets.
    "binder": None,
    "queues": frozenset(
        {
            "queue", "podgroup", "pod", "groupingwarning", "node", "priorityclass", "mirrorstate",
            "liveepoch", "livechange", "liveticket",
        }
    ),
    # Of the last hours; the scheduler writes them anew.
    "scheduler": None,
    "kaiweb": frozenset({"idempotentanswer"}),
    # What was told before the backup is not told again.
    "notifications": frozenset({"toldevent", "delivery"}),
}  # fmt: skip


def saved_labels() -> list[str]:
    """Return the labels of the saved models; one that another refers to comes before it."""
    models = [model for model in apps.get_models() if _is_saved(model)]
    ordered: list[str] = []

    def add(model: Any) -> None:
        label: str = model._meta.label_lower
        if label in ordered:
            return
        for field in [*model._meta.fields, *model._meta.many_to_many]:
            other = field.related_model
            if other is not None and other is not model and _is_saved(other):
                add(other)
        ordered.append(label)

    for model in models:
        add(model)
    return ordered


def _is_saved(model: Any) -> bool:
    app, name = model._meta.app_label, model._meta.model_name
    left_out = LEFT_OUT.get(app, frozenset())
    return left_out is not None and name not in left_out


def apps_with_saved_rows() -> list[str]:
    return sorted({label.partition(".")[0] for label in saved_labels()})
