"""An administrator sets what a GPU-hour costs, and Usage shows the cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.people import run_django
from tests.browser.test_accessibility import assert_clean
from tests.integration.stack import Stack

DELETE_ALL = (
    "from kaiweb.usage.models import GpuPrice, PriceCurrency;"
    " GpuPrice.objects.all().delete(); PriceCurrency.objects.all().delete()"
)


@pytest.fixture
def without_prices(stack: Stack) -> Iterator[None]:
    """There are no stored prices, before and afterwards."""
    run_django(stack, DELETE_ALL)
    yield
    run_django(stack, DELETE_ALL)


@pytest.mark.usefixtures("without_prices")
def test_a_price_is_set_corrected_and_deleted_and_usage_has_a_cost(page: Page):
    page.goto("/settings/prices")
    page.get_by_role("button", name="Currency: EUR").click()
    page.get_by_role("textbox", name="Currency").fill("USD")
    page.get_by_role("button", name="Set currency").click()
    expect(page.get_by_role("button", name="Currency: USD")).to_be_visible()
    page.get_by_role("button", name="New price").click()
    form = page.get_by_role("form", name="New price")
    form.get_by_role("combobox", name="GPU model").fill("*")
    form.get_by_label("Price of a GPU-hour in USD").fill("2.5")
    assert_clean(page)
    form.get_by_role("button", name="Set price").click()
    row = page.get_by_role("row", name="all other models")
    expect(row).to_contain_text("2.50 USD")
    assert_clean(page)
    row.get_by_role("button", name="Edit").click()
    form = page.get_by_role("form", name="Edit the price")
    form.get_by_label("Price of a GPU-hour in USD").fill("3")
    form.get_by_role("button", name="Save price").click()
    expect(row).to_contain_text("3.00 USD")
    page.goto("/usage")
    expect(page.get_by_text("by the price list")).to_be_visible()
    page.goto("/settings/prices")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No prices")).to_be_visible()
