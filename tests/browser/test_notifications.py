"""An administrator makes a webhook and tries it: the worker sends, and the page shows how it ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.people import run_django
from tests.browser.test_accessibility import assert_clean
from tests.integration.stack import Stack

DELETE_ALL = (
    "from kaiweb.notifications.models import Webhook; Webhook.objects.filter(name='pager').delete()"
)


@pytest.fixture
def without_webhooks(stack: Stack) -> Iterator[None]:
    """The webhook of this test does not outlive it."""
    yield
    run_django(stack, DELETE_ALL)


@pytest.mark.usefixtures("without_webhooks")
def test_a_webhook_is_made_tried_and_deleted(page: Page):
    page.goto("/settings/notifications")
    page.get_by_role("button", name="New webhook").click()
    form = page.get_by_role("form", name="New webhook")
    form.get_by_label("Name").fill("pager")
    form.get_by_label("URL").fill("http://10.0.0.1/hook")
    form.get_by_label("a workload waits too long").check()
    form.get_by_label("Too long is, in minutes").fill("45")
    form.get_by_role("button", name="Generate").click()
    assert_clean(page)
    form.get_by_role("button", name="Create webhook").click()
    expect(form.get_by_text("10.0.0.1 is a private address")).to_be_visible()
    # What a name stands for is known at the delivery only.
    form.get_by_label("URL").fill("http://localhost:9/hook")
    form.get_by_role("button", name="Create webhook").click()
    row = page.get_by_role("row", name="pager")
    expect(row).to_contain_text("a workload waits too long")
    expect(row).to_contain_text("signed")
    row.get_by_role("button", name="Send a test to pager").click()
    expect(row).to_contain_text("failed")
    expect(row).to_contain_text("is a private address; KAIWEB_NOTIFY_NETWORKS can allow")
    assert_clean(page)
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(row).to_have_count(0)
