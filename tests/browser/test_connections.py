"""The line between page and server: cut for long, begun anew by the server, or served too slowly by the page."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, WebSocket, WebSocketRoute, expect

from tests.browser import manifests
from tests.browser.people import run_django
from tests.integration.stack import Stack

QUEUE = "browser-line"
MARK = "document.documentElement.dataset.mark"
AWAY_S = 20
#: The server resets a client that owes it the acknowledgement of 64 frames, at four a second.
OVERRUN_MS = 90_000


@pytest.fixture
def line(stack: Stack) -> Iterator[Stack]:
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4))
    yield stack
    stack.kubectl("delete", "queue", QUEUE)


def _frames_of(page: Page) -> list[str]:
    frames: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: frames.append(str(frame)))

    page.on("websocket", listen)
    return frames


def _kinds(frames: list[str]) -> list[str]:
    return [json.loads(frame)["t"] for frame in frames]


def _set_quota(stack: Stack, quota: int) -> None:
    patch = json.dumps({"spec": {"resources": {"gpu": {"quota": quota}}}})
    stack.kubectl("patch", "queue", QUEUE, "--type=merge", "-p", patch)


def _quota(page: Page) -> Locator:
    return page.get_by_role("row", name=QUEUE).get_by_role("gridcell").nth(0)


def test_a_server_killed_for_20_s_is_survived_by_resuming_without_a_new_picture(
    stack: Stack, page: Page
):
    frames = _frames_of(page)
    page.goto(f"/nodes?q={manifests.NODE}")
    node = page.get_by_role("row", name=manifests.NODE)
    expect(node).to_contain_text("free")
    page.evaluate(f"{MARK} = 'same page'")
    assert stack.process is not None
    # A supervisor that stands still does not start the web process again.
    stack.process.send_signal(signal.SIGSTOP)
    try:
        stack.kill("web")
        expect(page.get_by_role("button", name="Offline")).to_be_visible()
        # No change of a queue or a pod: their webhooks are in the process that is away.
        stack.kubectl("cordon", manifests.NODE)
        page.wait_for_timeout(AWAY_S * 1000)
        expect(node).not_to_contain_text("cordoned")
        frames.clear()
    finally:
        stack.process.send_signal(signal.SIGCONT)
    try:
        expect(page.get_by_role("button", name="Live", exact=True)).to_be_visible(timeout=60_000)
        expect(node).to_contain_text("cordoned")
        assert page.evaluate(MARK) == "same page"
        assert "resumed" in _kinds(frames)
        assert "snap" not in _kinds(frames)
    finally:
        stack.kubectl("uncordon", manifests.NODE)


def test_a_flushed_log_resets_the_page_that_is_connected(line: Stack, page: Page):
    frames = _frames_of(page)
    page.goto("/queues")
    expect(_quota(page)).to_have_text("4")
    page.evaluate(f"{MARK} = 'same page'")
    frames.clear()
    run_django(line, "from queues import live; live.start_epoch()")
    for _ in range(100):
        if '"reason":"epoch"' in "".join(frames) and "snap" in _kinds(frames):
            break
        page.wait_for_timeout(100)
    assert '"reason":"epoch"' in "".join(frames)
    assert "snap" in _kinds(frames)
    _set_quota(line, 5)
    expect(_quota(page)).to_have_text("5")
    assert page.evaluate(MARK) == "same page"


def test_a_page_that_falls_behind_gets_a_new_picture_and_holds_nobody_up(line: Stack, page: Page):
    """Its acknowledgements are lost, as those of a page that cannot keep up."""
    received: list[str] = []

    def lose_acknowledgements(to_page: WebSocketRoute) -> None:
        to_server = to_page.connect_to_server()

        def forward(frame: str | bytes) -> None:
            if '"t":"ack"' not in str(frame):
                to_server.send(frame)

        def receive(frame: str | bytes) -> None:
            received.append(str(frame))
            to_page.send(frame)

        to_page.on_message(forward)
        to_server.on_message(receive)

    slow = page.context.new_page()
    slow.route_web_socket("**/api/v1/live", lose_acknowledgements)
    slow.goto("/queues")
    page.goto("/queues")
    expect(_quota(slow)).to_have_text("4")
    quota = 4
    for _ in range(OVERRUN_MS // 250):
        if any('"reason":"slow"' in frame for frame in received):
            break
        quota = quota % 90 + 1
        _set_quota(line, quota)
        slow.wait_for_timeout(100)
    assert any('"reason":"slow"' in frame for frame in received)
    _set_quota(line, 93)
    expect(_quota(page)).to_have_text("93", timeout=5_000)
    # After a reset the server sends at half the rate, from the new picture on.
    expect(_quota(slow)).to_have_text("93")
    expect(slow.get_by_role("button", name="Live", exact=True)).to_be_visible()
    slow.close()
