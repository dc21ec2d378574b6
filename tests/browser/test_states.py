"""What pages say when there is nothing, when something failed, and when the data is too old to act on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, WebSocketRoute, expect

from tests.browser import manifests
from tests.browser.people import create_account, logged_in
from tests.browser.test_accessibility import assert_clean
from tests.integration.stack import Stack

QUEUE = "browser-states"
OLD_MS = 70_000


@pytest.fixture(scope="module")
def newcomer(stack: Stack, browser: Browser, login_state: Path) -> Iterator[Page]:
    """A page of somebody without a role, who may read."""
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4))
    context = browser.new_context(base_url=stack.url, storage_state=login_state)
    page = context.new_page()
    page.goto("/")
    create_account(page, "nora")
    context.close()
    with logged_in(browser, stack, "nora") as page:
        yield page
    stack.kubectl("delete", "queue", QUEUE)


EMPTY = {
    "/settings/tokens": "No tokens",
    "/workloads?q=no-such-thing": "No workload matches these filters",
    "/nodes?q=no-such-thing": "No node matches",
    "/changes?state=rejected": "No change",
    "/audit?actor=nobody-at-all": "No write matches",
    "/workloads/default/no-such-thing": "This workload was not found",
    "/changes/987654": "There is no such change set",
    "/queues?queue=no-such-thing": 'There is no queue "no-such-thing"',
    "/settings/users": "Only administrators see users and their roles.",
}


@pytest.mark.parametrize("path", EMPTY)
def test_a_page_with_nothing_to_show_says_what_that_means(newcomer: Page, path: str):
    newcomer.goto(path)
    expect(newcomer.get_by_text(EMPTY[path]).first).to_be_visible()
    assert_clean(newcomer)


def test_a_part_that_fails_says_so_offers_another_try_and_leaves_the_rest(stack: Stack, page: Page):
    fails = True

    def answer(route: Route) -> None:
        if not fails:
            route.continue_()
            return
        problem = {
            "type": "https://kaiweb.dev/problems/internal",
            "title": "Internal error",
            "status": 500,
            "detail": "the database is away",
            "requestId": "req-123",
        }
        route.fulfill(status=500, content_type="application/problem+json", body=json.dumps(problem))

    page.route(re.compile(r"/api/v1/history/usage"), answer)
    page.goto("/usage")
    failure = page.get_by_role("alert").filter(has_text="the database is away")
    expect(failure).to_contain_text("Internal error")
    expect(failure).to_contain_text("Request req-123")
    expect(page.get_by_role("heading", name="Who used it")).to_be_visible()
    expect(page.get_by_text("of the range was observed")).to_be_visible()
    assert_clean(page)
    fails = False
    failure.get_by_role("button", name="Try again").click()
    expect(failure).to_be_hidden()


def test_a_page_that_waits_for_its_rows_shows_their_outline(stack: Stack, page: Page):
    page.route_web_socket("**/api/v1/live", lambda to_page: None)  # never answered
    page.goto("/workloads")
    expect(page.get_by_role("status", name="Loading")).to_be_visible()
    expect(page.get_by_role("button", name="Connecting")).to_be_visible()
    assert_clean(page)


def _as_old(to_page: WebSocketRoute) -> None:
    """Let the server report its data as older than a minute, as it does while the cluster does not answer."""
    to_server = to_page.connect_to_server()

    def receive(frame: str | bytes) -> None:
        message = json.loads(frame)
        if message.get("asOf"):
            message["asOf"]["time"] = "2020-01-01T00:00:00.000Z"
        to_page.send(json.dumps(message))

    to_page.on_message(to_server.send)
    to_server.on_message(receive)


def test_data_older_than_a_minute_is_announced_and_can_only_be_read(newcomer: Page, page: Page):
    page.route_web_socket("**/api/v1/live", _as_old)
    page.goto(f"/queues?queue={QUEUE}")
    banner = page.get_by_role("alert").filter(has_text="kaiweb does not hear from the cluster")
    expect(banner).to_contain_text("Nothing can be edited until it does.")
    form = page.get_by_role("form", name=f"Edit {QUEUE}")
    expect(form).to_contain_text("The data shown is out of date.")
    expect(form.get_by_label("GPU quota", exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Delete…")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="New queue")).to_be_disabled()
    expect(page.get_by_role("button", name=re.compile("^Delayed"))).to_be_visible()
    assert_clean(page)


def test_a_lost_connection_turns_from_a_mark_into_a_banner_after_a_minute(
    newcomer: Page, page: Page
):
    page.clock.install()
    page.goto("/queues")
    expect(page.get_by_role("row", name=QUEUE)).to_be_visible()
    page.context.set_offline(True)
    page.evaluate("window.dispatchEvent(new Event('offline'))")
    page.clock.fast_forward(OLD_MS)
    expect(page.get_by_role("alert")).to_contain_text("cannot be edited")
    expect(page.get_by_role("button", name="New queue")).to_be_disabled()
    page.context.set_offline(False)
    page.clock.fast_forward(OLD_MS)
    expect(page.get_by_role("button", name="Live", exact=True)).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="New queue")).to_be_enabled()
