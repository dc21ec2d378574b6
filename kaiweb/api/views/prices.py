"""The price list of GPU-hours: read by everybody, edited by admins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date
from typing import Annotated, Any, ClassVar

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from msgspec import UNSET, Meta, UnsetType
from rest_framework.request import Request
from rest_framework.response import Response

from kaiweb.api.base import Shows, View
from kaiweb.api.database_writes import write_database
from kaiweb.api.http import parameters
from kaiweb.api.schema import usage as schema
from kaiweb.api.versions import expected_tag
from kaiweb.api.writes import require_admin, unless_stale, write_request
from kaiweb.usage import price_writes
from kaiweb.usage.models import GpuPrice
from kaiweb.usage.price_writes import tag_of
from kaiweb.usage.prices import currency
from queues.models import Node
from scheduler.tools.simulate.what_if.question import Struct, read_body

WRITE = ("dryRun", "reason")
#: Without spaces and control characters, as in the label of a node.
Model = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"^[^\x00-\x20\x7f]+$")]
Price = Annotated[float, Meta(ge=0, le=1e9)]
Currency = Annotated[str, Meta(min_length=1, max_length=16, pattern=r"^[^\x00-\x20\x7f]+$")]


class _NewPrice(Struct, frozen=True, kw_only=True):
    model: Model
    price: Price
    valid_from: date | None = None


class _PriceEdit(Struct, frozen=True, kw_only=True):
    price: Price | UnsetType = UNSET
    valid_from: date | UnsetType = UNSET


class _CurrencyEdit(Struct, frozen=True, kw_only=True):
    currency: Currency


class Prices(View):
    """The price list."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"post": WRITE, "patch": WRITE}

    @extend_schema(operation_id="listPrices", responses=schema.PriceList)
    def get(self, _request: Request) -> Response:
        """Return all prices, stored ones and those of the settings, and their currency."""
        return _list_answer()

    @extend_schema(
        operation_id="createPrice",
        request=schema.PriceCreate,
        parameters=[parameters.ONLY_DRY_RUN, parameters.REASON, parameters.IDEMPOTENCY_KEY],
        responses={201: schema.Price},
    )
    def post(self, request: Request) -> Response:
        """Set the price of a model from a day on; what was used before that day costs what it did."""
        require_admin(request, "setting prices")
        return write_database(request, lambda: _create(request))

    @extend_schema(
        operation_id="patchPrices",
        request=schema.CurrencyEdit,
        parameters=parameters.PRICES_WRITE,
        responses=schema.PriceList,
    )
    def patch(self, request: Request) -> Response:
        """Set the currency of all prices; nothing is converted."""
        require_admin(request, "setting prices")
        return write_database(request, lambda: _edit_currency(request))


class PriceDetail(View):
    """One stored price."""

    shows = Shows.ITSELF
    accepts: ClassVar = {"patch": WRITE, "delete": WRITE}

    @extend_schema(
        operation_id="patchPrice",
        request=schema.PriceEdit,
        parameters=parameters.PRICES_WRITE,
        responses=schema.Price,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Correct a price or its first day; costs of the days on which it held change, too."""
        require_admin(request, "setting prices")
        return write_database(request, lambda: _edit(request, pk))

    @extend_schema(
        operation_id="deletePrice",
        parameters=parameters.PRICES_WRITE,
        responses={204: None},
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a price; on its days the one before it holds."""
        require_admin(request, "setting prices")
        return write_database(request, lambda: _delete(request, pk))


def _create(request: Request) -> Response:
    body = read_body(request.data, _NewPrice)
    write = write_request(request)
    row = price_writes.create_price(body.model, body.price, body.valid_from or _today(), write)
    item = _item_of(row)
    return Response(item, status=201, headers={"ETag": item["etag"]})


def _edit(request: Request, pk: int) -> Response:
    write = write_request(request, expected_tag=expected_tag(request, "price"))
    body = read_body(request.data, _PriceEdit)
    values = {"price": body.price, "validFrom": body.valid_from}
    changes = {name: value for name, value in values.items() if value is not UNSET}
    item = _item_of(unless_stale(lambda: price_writes.edit_price(pk, changes, write), _item_of))
    return Response(item, headers={"ETag": item["etag"]})


def _delete(request: Request, pk: int) -> Response:
    write = write_request(request, expected_tag=expected_tag(request, "price"))
    unless_stale(lambda: price_writes.delete_price(pk, write), _item_of)
    return Response(status=204)


def _edit_currency(request: Request) -> Response:
    write = write_request(request, expected_tag=expected_tag(request, "price list"))
    body = read_body(request.data, _CurrencyEdit)
    unless_stale(lambda: price_writes.edit_currency(body.currency, write), lambda _row: _list())
    return _list_answer()


def _list_answer() -> Response:
    body = _list()
    return Response(body, headers={"ETag": body["etag"]})


def _list() -> dict[str, Any]:
    rows = list(GpuPrice.objects.all())
    valid = _valid_ones(rows)
    defaults: Mapping[str, float] = settings.KAIWEB_GPU_PRICES
    models = Node.objects.exclude(model="").order_by("model").values_list("model", flat=True)
    unit = currency()
    return {
        "items": [_item(row, valid) for row in rows],
        "defaults": [{"model": model, "price": price} for model, price in defaults.items()],
        "currency": unit.currency,
        "models": list(models.distinct()),
        "etag": f'"{tag_of(unit)}"',
    }


def _item_of(row: GpuPrice) -> dict[str, Any]:
    return _item(row, _valid_ones(GpuPrice.objects.filter(model=row.model)))


def _valid_ones(rows: Iterable[GpuPrice]) -> dict[str, date]:
    """Return for each model from which day on its present price holds; of rows in the order of days."""
    today = _today()
    return {row.model: row.valid_from for row in rows if row.valid_from <= today}


def _item(row: GpuPrice, valid: Mapping[str, date]) -> dict[str, Any]:
    present = valid.get(row.model)
    state = "later" if row.valid_from > _today() else "replaced"
    return {
        "id": row.pk,
        "model": row.model,
        "price": row.price,
        "validFrom": row.valid_from.isoformat(),
        "state": "valid" if row.valid_from == present else state,
        "etag": f'"{tag_of(row)}"',
    }


def _today() -> date:
    return timezone.now().astimezone(UTC).date()
