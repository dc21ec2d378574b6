"""Edits are collected in a draft, reviewed, applied together and undone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import manifests
from tests.browser.people import run_django
from tests.browser.test_accessibility import assert_clean
from tests.integration.stack import Stack, wait_until

QUEUES = ("browser-draft-a", "browser-draft-b")


@pytest.fixture
def pair(stack: Stack) -> Iterator[Stack]:
    for queue in QUEUES:
        stack.kubectl("apply", "-f", "-", stdin=manifests.queue(queue, quota=8))
    yield stack
    for queue in QUEUES:
        stack.kubectl("delete", "queue", queue)


def _quotas(stack: Stack) -> list[float]:
    return [stack.objects("queue", name)[0]["spec"]["resources"]["gpu"]["quota"] for name in QUEUES]


def _add_to_draft(page: Page, queue: str, quota: str) -> None:
    page.get_by_role("row", name=queue).click()
    form = page.get_by_role("form", name=f"Edit {queue}")
    form.get_by_label("GPU quota", exact=True).fill(quota)
    form.get_by_role("button", name="Add to draft").click()
    expect(form.get_by_text("This queue has edits in the draft.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()


def test_two_edits_are_drafted_reviewed_applied_and_undone(pair: Stack, page: Page):
    page.goto("/queues")
    _add_to_draft(page, QUEUES[0], "6")
    _add_to_draft(page, QUEUES[1], "10")
    assert _quotas(pair) == [8, 8]
    tray = page.get_by_role("region", name="Draft")
    expect(tray.get_by_role("status")).to_have_text("2 queues: browser-draft-a, browser-draft-b")
    expect(page.get_by_role("row", name=QUEUES[0]).get_by_role("gridcell").nth(0)).to_have_text("6")
    page.reload()
    tray.get_by_role("link", name="Review").click()
    for queue, row in zip(QUEUES, ("8 GPUs 6 GPUs", "8 GPUs 10 GPUs"), strict=True):
        table = page.get_by_role("table", name=queue)
        expect(table.get_by_role("row", name=f"GPU quota {row}")).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Nothing changes for any workload.")).to_be_visible()
    assert_clean(page)
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text("2 of 2 done")).to_be_visible()
    assert _quotas(pair) == [6, 10]
    assert_clean(page)
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.get_by_text("Undone")).to_be_visible()
    assert _quotas(pair) == [8, 8]
    page.goto(f"/audit?queue={QUEUES[0]}")
    expect(page.get_by_text("8 GPUs → 6 GPUs")).to_be_visible()
    expect(page.get_by_text("6 GPUs → 8 GPUs")).to_be_visible()


@pytest.fixture
def without_policies(pair: Stack) -> Iterator[Stack]:
    """The policies are as after an installation, also afterwards."""
    yield pair
    run_django(pair, "from queues.models import ChangePolicy; ChangePolicy.objects.all().delete()")


def test_by_policy_a_reduction_waits_for_another_admin(without_policies: Stack, page: Page):
    page.goto("/settings/policies")
    page.get_by_role("radio", name="Those that take something away").check()
    page.get_by_role("button", name="Save policies").click()
    expect(page.get_by_text("They hold from now on")).to_be_visible()
    assert_clean(page)
    page.goto("/queues")
    page.get_by_role("row", name=QUEUES[0]).click()
    form = page.get_by_role("form", name=f"Edit {QUEUES[0]}")
    form.get_by_label("GPU quota", exact=True).fill("6")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("needs the approval of another admin")).to_be_visible()
    form.get_by_role("button", name="Add to draft").click()
    expect(form.get_by_text("This queue has edits in the draft.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    page.get_by_role("region", name="Draft").get_by_role("link", name="Review").click()
    expect(page.get_by_text("an administrator other than the author must approve")).to_be_visible()
    expect(page.get_by_role("button", name="Apply", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Request approval").click()
    expect(page.get_by_text("Approval requested")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert _quotas(without_policies) == [8, 8]


def test_a_save_is_undone_from_its_notification_by_keyboard_alone(pair: Stack, page: Page):
    page.goto("/queues")
    row = page.get_by_role("row", name=QUEUES[0])
    row.focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name=f"Edit {QUEUES[0]}")
    form.get_by_label("GPU quota", exact=True).focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("3")
    expect(form.get_by_role("button", name="Save")).to_be_enabled()
    page.keyboard.press("Enter")
    undo = page.get_by_role("button", name="Undo", exact=True)
    undo.focus()
    assert _quotas(pair)[0] == 3
    page.keyboard.press("Enter")
    wait_until(lambda: _quotas(pair)[0] == 8, what="the quota from before", stack=pair)
    page.goto("/changes")
    page.get_by_role("row", name=f"Undo: {QUEUES[0]}").click()
    expect(page.get_by_role("heading", name=re.compile("Undo"), level=1)).to_be_visible()
