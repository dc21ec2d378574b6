"""What GPU-hours cost: by the stored prices, each valid from a day on, and before them by those of the settings."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time

from django.conf import settings

from kaiweb.usage.models import GpuPrice, PriceCurrency
from kaiweb.usage.tiers import Piece

#: In a price list: the price of models that are not in it.
OTHER_MODELS = "*"
PriceOf = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices over time.

    Attributes
    ----------
    starts : when prices change, ascending; the first prices hold also before
    prices : for each start the price of a GPU-hour by model
    currency : None without any price
    """

    starts: tuple[datetime, ...]
    prices: tuple[PriceOf, ...]
    currency: str | None

    def period_of(self, moment: datetime) -> int:
        """Return the number of the period between two changes of prices that contains the moment."""
        return bisect_right(self.starts, moment)

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Divide pieces of a range where prices change; days begin at midnight, as the rows of every tier may."""
        for piece in pieces:
            start = piece.start
            for change in self.starts:
                if start < change < piece.end:
                    yield replace(piece, start=start, end=change)
                    start = change
            yield replace(piece, start=start)

    def cost(self, hours: Mapping[tuple[int, str], float]) -> float | None:
        """Return the cost of GPU-hours; None without prices, or if that of a model that was used is unknown.

        Parameters
        ----------
        hours : GPU-hours by period and model
        """
        total = 0.0
        for (period, model), amount in hours.items():
            price_of = self.prices[period]
            price = price_of.get(model, price_of.get(OTHER_MODELS))
            if amount and price is None:
                return None
            total += amount * (price or 0.0)
        return None if self.currency is None else round(total, 2)


def price_list() -> PriceList:
    """Return the prices: a stored price takes the place of the setting's for the same model from its day on."""
    changes: dict[date, dict[str, float]] = defaultdict(dict)
    for row in GpuPrice.objects.all():
        changes[row.valid_from][row.model] = row.price
    prices: list[PriceOf] = [dict(settings.KAIWEB_GPU_PRICES)]
    for day in sorted(changes):
        prices.append({**prices[-1], **changes[day]})
    starts = tuple(datetime.combine(day, time(), tzinfo=UTC) for day in sorted(changes))
    return PriceList(starts, tuple(prices), currency().currency if any(prices) else None)


def currency() -> PriceCurrency:
    """Return the row of the currency; without one an unsaved row that has that of the settings."""
    return PriceCurrency.objects.first() or PriceCurrency(currency=settings.KAIWEB_CURRENCY)
