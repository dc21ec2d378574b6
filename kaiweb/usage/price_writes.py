"""Create, edit and delete prices, and set their currency, with entries in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.db import transaction

from kaiweb.usage.models import GpuPrice, PriceCurrency
from kaiweb.usage.prices import currency
from queues.editing.audit_entries import record
from queues.editing.edits import Difference
from queues.editing.write_requests import WriteRequest, refuse_stale
from queues.models import AuditAction, AuditKind
from queues.selectors import row_with_number

#: Name in REST -> column.
COLUMNS = {"model": "model", "price": "price", "validFrom": "valid_from"}
#: The target of the entry about the currency.
CURRENCY = "currency"


class PriceExistsError(Exception):
    """The model has another price from the same day on."""

    def __init__(self, model: str, valid_from: date) -> None:
        super().__init__(f"'{model}' has a price from {valid_from} on already; edit that one")


class UnknownPriceError(Exception):
    """There is no price of this number."""


def tag_of(price: GpuPrice | PriceCurrency) -> str:
    """Return the edit tag of a price or of the currency."""
    return f"{price.pk}-{price.version}"


def create_price(model: str, price: float, valid_from: date, request: WriteRequest) -> GpuPrice:
    """Store the price of a GPU-hour of a model from a day on.

    Raises
    ------
    PriceExistsError : the model has a price from this day on
    """
    with transaction.atomic():
        row, is_new = GpuPrice.objects.get_or_create(
            model=model, valid_from=valid_from, defaults={"price": price}
        )
        if not is_new:
            raise PriceExistsError(model, valid_from)
        diff = [Difference("", None, _shown(row))]
        record(AuditKind.PRICE, AuditAction.CREATE, str(row), request, diff=diff)
    return row


def edit_price(pk: int, values: Mapping[str, Any], request: WriteRequest) -> GpuPrice:
    """Set the price or the day of a stored price, by their names in REST.

    Raises
    ------
    PriceExistsError, StaleRowError, UnknownPriceError
    """
    with transaction.atomic():
        row = _locked(pk, request)
        target, before = str(row), _shown(row)
        for name, value in values.items():
            setattr(row, COLUMNS[name], value)
        same = GpuPrice.objects.filter(model=row.model, valid_from=row.valid_from)
        if same.exclude(pk=pk).exists():
            raise PriceExistsError(row.model, row.valid_from)
        after = _shown(row)
        diff = [
            Difference(f"/{name}", before[name], after[name])
            for name in COLUMNS
            if before[name] != after[name]
        ]
        if diff:
            row.version += 1
            row.save()
            record(AuditKind.PRICE, AuditAction.UPDATE, target, request, diff=diff)
    return row


def delete_price(pk: int, request: WriteRequest) -> None:
    """Delete a stored price; what was used on its days costs by the price before it.

    Raises
    ------
    StaleRowError, UnknownPriceError
    """
    with transaction.atomic():
        row = _locked(pk, request)
        diff = [Difference("", _shown(row), None)]
        record(AuditKind.PRICE, AuditAction.DELETE, str(row), request, diff=diff)
        row.delete()


def edit_currency(name: str, request: WriteRequest) -> PriceCurrency:
    """Set what all prices are in; nothing is converted.

    Raises
    ------
    StaleRowError : the tag of the request is another one
    """
    with transaction.atomic():
        PriceCurrency.objects.get_or_create(only=True, defaults={"currency": currency().currency})
        row = PriceCurrency.objects.select_for_update().get(only=True)
        _refuse_stale(row, request)
        if row.currency != name:
            diff = [Difference("/currency", row.currency, name)]
            row.currency, row.version = name, row.version + 1
            row.save()
            record(AuditKind.PRICE, AuditAction.UPDATE, CURRENCY, request, diff=diff)
    return row


def _locked(pk: int, request: WriteRequest) -> GpuPrice:
    row = row_with_number(GpuPrice.objects.select_for_update(), pk)
    if row is None:
        raise UnknownPriceError(f"price {pk} does not exist")
    _refuse_stale(row, request)
    return row


def _refuse_stale(row: GpuPrice | PriceCurrency, request: WriteRequest) -> None:
    refuse_stale(request, row, tag_of(row), f"'{row}' has changed since you read it")


def _shown(row: GpuPrice) -> dict[str, Any]:
    return {"model": row.model, "price": row.price, "validFrom": row.valid_from.isoformat()}
