"""What colleagues with fewer rights see: forms that open locked, and the end of their sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import manifests
from tests.browser.people import call, create_account, logged_in, read, spec_of
from tests.integration.stack import Stack

DEPARTMENT, TEAM, OTHER = "browser-dept", "browser-team", "browser-other"
#: The server looks at the rights of open connections every half minute.
NOTICED_MS = 45_000


@pytest.fixture(scope="module")
def department(stack: Stack, browser: Browser, login_state: Path) -> Iterator[Stack]:
    """A department with one team beside a foreign queue, an editor of the department and a viewer."""
    for name, parent in ((DEPARTMENT, None), (TEAM, DEPARTMENT), (OTHER, None)):
        manifest = manifests.queue(name, quota=4, parent=parent)
        stack.kubectl("apply", "-f", "-", stdin=manifest)
    context = browser.new_context(base_url=stack.url, storage_state=login_state)
    page = context.new_page()
    page.goto("/")
    create_account(page, "eddy", "editor", DEPARTMENT)
    create_account(page, "vera", "viewer")
    context.close()
    yield stack
    stack.kubectl("delete", "queue", TEAM)
    stack.kubectl("delete", "queue", DEPARTMENT, OTHER)


@pytest.fixture(scope="module")
def editor(department: Stack, browser: Browser) -> Iterator[Page]:
    with logged_in(browser, department, "eddy") as page:
        yield page


@pytest.fixture(scope="module")
def viewer(department: Stack, browser: Browser) -> Iterator[Page]:
    with logged_in(browser, department, "vera") as page:
        yield page


def test_an_editor_edits_below_the_granted_queue(department: Stack, editor: Page):
    editor.goto(f"/queues?queue={TEAM}")
    form = editor.get_by_role("form", name=f"Edit {TEAM}")
    form.get_by_label("GPU quota", exact=True).fill("3")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("status")).to_have_text("No changes")
    assert spec_of(department, TEAM)["resources"]["gpu"]["quota"] == 3


@pytest.mark.parametrize("queue", [DEPARTMENT, OTHER])
def test_at_the_border_and_beyond_it_the_form_opens_locked_and_says_why(
    department: Stack, editor: Page, queue: str
):
    editor.goto(f"/queues?queue={queue}")
    form = editor.get_by_role("form", name=f"Edit {queue}")
    expect(form).to_contain_text("You can edit only queues below the ones given to you.")
    expect(form.get_by_label("GPU quota", exact=True)).to_be_disabled()
    expect(editor.get_by_role("button", name="Delete…")).to_have_count(0)
    etag = read(editor, f"/queues/{queue}")["etag"]
    status = editor.evaluate(
        """async ([path, etag]) => (await fetch(path, {
          method: "PATCH", body: JSON.stringify({ quota: { gpu: 99 } }),
          headers: { "Content-Type": "application/json", "If-Match": etag,
            "X-CSRFToken": document.cookie.match(/csrftoken=([^;]+)/)[1] },
        })).status""",
        [f"/api/v1/queues/{queue}", etag],
    )
    assert status == 403
    assert spec_of(department, queue)["resources"]["gpu"]["quota"] == 4


def test_nothing_crosses_the_border_by_move_or_creation(department: Stack, editor: Page):
    editor.goto(f"/queues?queue={TEAM}")
    editor.get_by_role("button", name="Move…").click()
    editor.get_by_role("combobox", name="Parent queue").click()
    expect(editor.get_by_role("option", name=DEPARTMENT)).to_be_visible()
    for place in ("None: a top-level queue", OTHER):
        expect(editor.get_by_role("option", name=place)).to_have_count(0)
    status, problem = call(editor, "POST", "/queues", {"name": "smuggled", "parent": OTHER})
    assert (status, problem["type"].rsplit("/", 1)[1]) == (403, "forbidden")
    editor.keyboard.press("Escape")
    editor.keyboard.press("Escape")
    editor.goto("/queues")
    editor.get_by_role("row", name=TEAM).drag_to(editor.get_by_role("row", name=OTHER))
    dialog = editor.get_by_role("dialog", name=f"Move {TEAM}")
    # A target outside is not taken over: the present parent stays chosen.
    expect(dialog.get_by_role("combobox", name="Parent queue")).to_have_value(DEPARTMENT)
    expect(dialog.get_by_role("button", name="Move queue")).to_be_disabled()
    assert spec_of(department, TEAM)["parentQueue"] == DEPARTMENT


def test_a_viewer_reads_everything_and_is_told_whom_to_ask(department: Stack, viewer: Page):
    viewer.goto("/queues")
    expect(viewer.get_by_role("row", name=TEAM)).to_be_visible()
    expect(viewer.get_by_role("button", name="New queue")).to_have_count(0)
    viewer.get_by_role("row", name=TEAM).click()
    form = viewer.get_by_role("form", name=f"Edit {TEAM}")
    expect(form).to_contain_text("You can view queues but not edit them. Ask an administrator")
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    viewer.goto("/settings/users")
    expect(viewer.get_by_text("Only administrators see users and their roles.")).to_be_visible()


LISTEN = """async ([secret]) => {
  const answer = await fetch("/api/v1/live/tickets", {
    method: "POST", headers: { Authorization: "Bearer " + secret }, credentials: "omit" });
  const { ticket } = await answer.json();
  const url = location.origin.replace("http", "ws") + "/api/v1/live?ticket=" + ticket;
  const socket = new WebSocket(url, "kaiweb.live.v1");
  window.heard = [];
  socket.onmessage = ({ data }) => window.heard.push(JSON.parse(data).t);
  socket.onclose = ({ code }) => { window.closeCode = code; };
  socket.onopen = () => {
    socket.send(JSON.stringify({ t: "hello", client: "test", locale: "en" }));
    socket.send(JSON.stringify({ t: "sub", id: "1", topic: "cluster", params: {} }));
  };
}"""


def _until(page: Page, holds: Callable[[], bool]) -> None:
    """Poll; the content security policy forbids Playwright's own polling, which evaluates text."""
    for _ in range(NOTICED_MS // 250):
        if holds():
            return
        page.wait_for_timeout(250)
    raise AssertionError(f"this did not come within {NOTICED_MS} ms")


def test_tokens_roles_and_accounts_that_are_taken_away_end_what_is_connected(
    department: Stack, browser: Browser, page: Page
):
    page.goto("/settings/tokens")
    create_account(page, "tom", "editor", DEPARTMENT)
    create_account(page, "lou")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("watcher")
    page.get_by_role("button", name="Create token").click()
    secret = page.get_by_role("dialog").locator("code").inner_text()
    page.get_by_role("button", name="I have copied it").click()
    script = browser.new_context(base_url=department.url).new_page()
    script.goto("/login")
    script.evaluate(LISTEN, [secret])
    _until(script, lambda: script.evaluate("window.heard.includes('snap')"))
    frames: list[str] = []
    with (
        logged_in(browser, department, "tom") as with_role,
        logged_in(browser, department, "lou") as account,
    ):
        with_role.on(
            "websocket", lambda ws: ws.on("framereceived", lambda f: frames.append(str(f)))
        )
        with_role.goto("/queues")
        expect(with_role.get_by_role("row", name=TEAM)).to_be_visible()
        account.goto("/workloads")
        expect(account.get_by_role("button", name="Live", exact=True)).to_be_visible()

        page.get_by_role("button", name="Revoke watcher").click()
        page.get_by_role("button", name="Revoke", exact=True).click()
        page.get_by_role("link", name="Users and roles").click()
        page.get_by_role("button", name=f"Remove editor · {DEPARTMENT} from tom").click()
        may_log_in = page.get_by_role("switch", name="lou may log in")
        may_log_in.click()
        expect(may_log_in).not_to_be_checked()

        _until(script, lambda: script.evaluate("window.closeCode === 4401"))
        expect(account.get_by_role("alert")).to_contain_text(
            "You have been signed out", timeout=NOTICED_MS
        )
        _until(with_role, lambda: any('"reason":"rights"' in frame for frame in frames))
        expect(with_role.get_by_role("row", name=TEAM)).to_be_visible()
    script.context.close()
