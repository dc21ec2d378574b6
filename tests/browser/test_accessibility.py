"""axe finds nothing on any page, in either theme (WCAG 2.2 AA and its best practices)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import manifests
from tests.integration.stack import Stack, wait_until

QUEUE = "browser-axe"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PAGES = {
    "/": "GPU map",
    "/queues": "default-parent-queue",
    f"/queues?queue={QUEUE}": "No changes",
    "/workloads": "waits",
    "/workloads/waits": "Scheduling steps",
    "/workloads/waits/pods": "waits",
    "/nodes": manifests.NODE,
    "/scheduler": "Time per session",
    "/changes": "Changes",
    "/simulate": "Earlier simulations",
    "/settings": "Users and roles",
    "/settings/users": "May log in",
    "/audit": "Every write, by page",
    "/usage": "Who used it",
    f"/queues/{QUEUE}/history": "Waiting times and evictions by day",
    "/no-such-page": "Page not found",
}


@pytest.fixture(scope="module")
def filled(stack: Stack) -> Iterator[str]:
    """A queue with a running and a waiting pod: pages without rows prove little. Yields the path."""
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4))
    for manifest in (
        manifests.pod("runs", queue=QUEUE),
        manifests.pod("waits", queue=QUEUE, gpus=8, priority_class="build"),
    ):
        stack.kubectl("apply", "-f", "-", stdin=manifest)
    wait_until(
        lambda: len(stack.objects("podgroups", "-n", manifests.NAMESPACE)) == 2,
        what="two pod groups",
        stack=stack,
    )
    groups = stack.objects("podgroups", "-n", manifests.NAMESPACE)
    name = next(
        group["metadata"]["name"] for group in groups if "waits" in group["metadata"]["name"]
    )
    yield f"/workloads/{manifests.NAMESPACE}/{name}"
    stack.kubectl("delete", "pod", "--all", "-n", manifests.NAMESPACE, "--now")
    stack.kubectl("delete", "queue", QUEUE)


def _open_new_queue(page: Page) -> None:
    page.goto("/queues")
    page.get_by_role("button", name="New queue").click()
    page.get_by_label("Name", exact=False).first.fill("Not A Name")
    expect(page.get_by_text("expected lower-case letters")).to_be_visible()


def _open_move(page: Page) -> None:
    page.goto(f"/queues?queue={QUEUE}")
    page.get_by_role("button", name="Move…").click()
    expect(page.get_by_role("combobox", name="Parent queue")).to_be_visible()


def _open_delete(page: Page) -> None:
    page.goto(f"/queues?queue={QUEUE}")
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("button", name="Delete queue")).to_be_visible()


def _change_field(page: Page) -> None:
    page.goto(f"/queues?queue={QUEUE}")
    page.get_by_label("GPU quota", exact=True).fill("5")
    expect(page.get_by_text("1 field changed")).to_be_visible()


def _leave_changed_form(page: Page) -> None:
    _change_field(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Discard")).to_be_visible()


def _open_search(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("button", name="Search everything")).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("textbox", name="Queue, workload, pod").fill(QUEUE)
    expect(page.get_by_role("option", name=QUEUE).first).to_be_visible()


def _open_hold(page: Page) -> None:
    page.goto("/workloads?q=waits")
    page.get_by_role("row", name="waits").click()
    page.get_by_role("button", name="Hold…").click()
    expect(page.get_by_role("textbox", name="Reason")).to_be_visible()


def _open_children(page: Page) -> None:
    page.goto("/queues?queue=default-parent-queue")
    page.get_by_role("button", name="Edit children…").click()
    expect(page.get_by_role("button", name="Share evenly")).to_be_visible()


STATES = [
    _open_new_queue,
    _open_move,
    _open_delete,
    _leave_changed_form,
    _open_search,
    _open_hold,
    _open_children,
]


@pytest.fixture(scope="module", params=["light", "dark"])
def themed(
    browser: Browser, stack: Stack, session: str, request: pytest.FixtureRequest
) -> Iterator[Page]:
    context = browser.new_context(
        base_url=stack.url,
        storage_state=session,
        viewport={"width": 1280, "height": 900},
        color_scheme=request.param,
        reduced_motion="reduce",
    )
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(filled: str, themed: Page, path: str):
    themed.goto(path.replace("/workloads/waits", filled))
    expect(themed.get_by_text(PAGES[path]).first).to_be_visible()
    assert_clean(themed)


def test_axe_finds_nothing_in_a_form_with_changes(filled: str, themed: Page):
    themed.goto(f"/queues?queue={QUEUE}")
    form = themed.get_by_role("form", name=f"Edit {QUEUE}")
    form.get_by_label("GPU quota", exact=True).fill("5")
    expect(form.get_by_role("status")).to_have_text("1 field changed")
    expect(form.get_by_role("button", name="Save")).to_be_enabled()
    assert_clean(themed)
    form.get_by_label("GPU quota", exact=True).fill("5x")
    expect(form.get_by_role("status")).to_have_text("Correct 1 field before saving")
    assert_clean(themed)


@pytest.mark.parametrize("reach", STATES)
def test_axe_finds_nothing_in_a_dialog(filled: str, themed: Page, reach: Callable[[Page], None]):
    reach(themed)
    assert_clean(themed)


def test_axe_finds_nothing_on_the_login_page(browser: Browser, stack: Stack):
    for theme in ("light", "dark"):
        context = browser.new_context(base_url=stack.url, color_scheme=theme)
        page = context.new_page()
        page.goto("/login")
        expect(page.get_by_label("Password")).to_be_visible()
        assert_clean(page)
        context.close()


def assert_clean(page: Page) -> None:
    options = {"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"]}
    violations = Axe().run(page, options=options).response["violations"]
    problems = [f"{fault['id']}: {fault['nodes'][0]['html']}" for fault in violations]
    assert problems == []
