"""Acting on a workload in its page, and finding things by keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import manifests
from tests.integration.stack import Stack, wait_until

QUEUE = "browser-actions"


@pytest.fixture
def waiting(stack: Stack) -> Iterator[Stack]:
    """A pod that is too large for the node, so that it waits."""
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4))
    stack.kubectl("apply", "-f", "-", stdin=manifests.pod("acted-on", queue=QUEUE, gpus=64))
    yield stack
    stack.kubectl("delete", "pod", "acted-on", "--now")
    stack.kubectl("delete", "queue", QUEUE)


def _hold(stack: Stack) -> str | None:
    groups = stack.objects("podgroups", "-n", manifests.NAMESPACE)
    group = next(group for group in groups if "acted-on" in group["metadata"]["name"])
    value: str | None = (group["metadata"].get("annotations") or {}).get("kaiweb.dev/hold")
    return value


def test_a_workload_is_found_held_and_released_by_keyboard_alone(waiting: Stack, page: Page):
    page.goto("/")
    expect(page.get_by_role("button", name="Search everything")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("textbox", name="Queue, workload, pod").fill("acted-on")
    expect(page.get_by_role("option", name="acted-on").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/workloads/.*acted-on"))

    page.get_by_role("button", name="Hold…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Reason")).to_be_focused()
    page.keyboard.type("budget review")
    page.keyboard.press("Enter")
    expect(page.get_by_text("On hold until it is released: budget review")).to_be_visible()
    assert _hold(waiting) == "budget review"

    page.get_by_role("button", name="Release…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Reason")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Hold…")).to_be_visible()
    wait_until(lambda: _hold(waiting) is None, what="the end of the hold", stack=waiting)
