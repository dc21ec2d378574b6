"""What GPU-hours cost, by the price list of the settings."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

#: In the price list: the price of models that are not in it.
OTHER_MODELS = "*"


def cost(hours_by_model: Mapping[str, float]) -> float | None:
    """Return the cost of GPU-hours; None if there is no list, or it lacks the price of a model that was used."""
    price_by_model: Mapping[str, float] = settings.KAIWEB_GPU_PRICES
    other = price_by_model.get(OTHER_MODELS)
    total = 0.0
    for model, hours in hours_by_model.items():
        price = price_by_model.get(model, other)
        if hours and price is None:
            return None
        total += hours * (price or 0.0)
    return round(total, 2) if price_by_model else None
