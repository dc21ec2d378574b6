"""What a user has chosen on a page is in its address: a reload, or a colleague with the link, sees the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import manifests
from tests.integration.stack import Stack

QUEUE, CHILD = "browser-view", "browser-view-child"


@pytest.fixture(scope="module")
def view(stack: Stack) -> Iterator[Stack]:
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4))
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(CHILD, quota=2, parent=QUEUE))
    stack.kubectl("apply", "-f", "-", stdin=manifests.pod("viewed", queue=CHILD, gpus=64))
    yield stack
    stack.kubectl("delete", "pod", "viewed", "--now")
    stack.kubectl("delete", "queue", CHILD)
    stack.kubectl("delete", "queue", QUEUE)


def _queues(page: Page) -> Callable[[], None]:
    page.goto("/queues")
    page.get_by_role("radiogroup", name="Resource").get_by_text("Memory").click()
    parent = page.get_by_role("row", name=QUEUE).first
    expect(page.get_by_role("row", name=CHILD)).to_be_visible()
    parent.press("ArrowLeft")
    expect(page.get_by_role("row", name=CHILD)).to_have_count(0)

    def check() -> None:
        expect(page.get_by_role("radio", name="Memory")).to_be_checked()
        expect(parent).to_have_attribute("aria-expanded", "false")
        expect(page.get_by_role("row", name=CHILD)).to_have_count(0)

    return check


def _open_queue(page: Page) -> Callable[[], None]:
    page.goto("/queues")
    page.get_by_role("row", name=CHILD).click()

    def check() -> None:
        expect(page.get_by_role("form", name=f"Edit {CHILD}")).to_be_visible()

    return check


def _workloads(page: Page) -> Callable[[], None]:
    page.goto("/workloads")
    page.get_by_role("combobox", name="Any queue").fill(QUEUE)
    page.get_by_role("option", name=QUEUE, exact=True).click()
    page.get_by_role("combobox", name="Any state").click()
    page.get_by_role("option", name="Pending").click()
    page.get_by_role("columnheader", name="GPUs").get_by_role("button").click()

    def check() -> None:
        expect(page.get_by_role("combobox", name="Any queue")).to_have_value(QUEUE)
        expect(page.get_by_role("combobox", name="Any state")).to_have_value("Pending")
        expect(page.get_by_role("columnheader", name="GPUs")).to_have_attribute(
            "aria-sort", re.compile("ascending|descending")
        )
        # The filter by a parent includes what is below it.
        expect(page.get_by_role("row", name="viewed")).to_be_visible()
        expect(page.get_by_text("1 of")).to_be_visible()

    return check


def _nodes(page: Page) -> Callable[[], None]:
    page.goto("/nodes")
    page.get_by_label("Search nodes").fill("h100")
    page.get_by_role("radiogroup", name="Group by").get_by_text("Zone").click()
    page.get_by_role("switch", name="Only with free GPUs").click()

    def check() -> None:
        expect(page.get_by_label("Search nodes")).to_have_value("h100")
        expect(page.get_by_role("radio", name="Zone")).to_be_checked()
        expect(page.get_by_label("Only with free GPUs")).to_be_checked()

    return check


def _usage(page: Page) -> Callable[[], None]:
    page.goto("/usage")
    page.get_by_role("radiogroup", name="Range").get_by_text("30 days").click()
    page.get_by_role("radiogroup", name="Rows").get_by_text("GPU models").click()
    page.get_by_role("combobox", name="First queue").fill(QUEUE)
    page.get_by_role("option", name=QUEUE, exact=True).click()

    def check() -> None:
        expect(page.get_by_role("radio", name="30 days")).to_be_checked()
        expect(page.get_by_role("radio", name="GPU models")).to_be_checked()
        expect(page.get_by_role("combobox", name="First queue")).to_have_value(QUEUE)

    return check


def _audit(page: Page) -> Callable[[], None]:
    page.goto("/audit")
    page.get_by_role("combobox", name="Any outcome").click()
    page.get_by_role("option", name="failed").click()

    def check() -> None:
        expect(page.get_by_role("combobox", name="Any outcome")).to_have_value("failed")

    return check


def _scheduler(page: Page) -> Callable[[], None]:
    page.goto("/scheduler")
    page.get_by_role("columnheader", name="Duration").get_by_role("button").click()

    def check() -> None:
        expect(page.get_by_role("columnheader", name="Duration")).to_have_attribute(
            "aria-sort", re.compile("ascending|descending")
        )

    return check


@pytest.mark.parametrize(
    "choose", [_queues, _open_queue, _workloads, _nodes, _usage, _audit, _scheduler]
)
def test_a_reload_and_a_shared_link_keep_the_view(
    view: Stack, page: Page, choose: Callable[[Page], Callable[[], None]]
):
    check = choose(page)
    check()
    page.reload()
    check()
