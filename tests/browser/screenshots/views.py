"""Every page, tab and state that is photographed, each with how a browser gets there in an installation with demo work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from playwright.sync_api import Locator, Page, WebSocketRoute

Visit = Callable[[Page], None]

#: How long a page may take to draw its rows.
SETTLE_MS = 1_500
QUEUE, SIBLING, PARENT = "demo-vision", "demo-robotics", "demo-research"
NODE = "a100-1"
#: What a new installation, in which nothing has happened yet, says of its cluster.
NOTHING_YET = {
    "workloads": {"pending": 0, "running": 0, "finished": 0, "failed": 0},
    "queues": {"total": 2},
}


def at(path: str) -> Visit:
    """Return a visit of an address."""

    def visit(page: Page) -> None:
        page.goto(path)
        page.locator("main, form").first.wait_for()
        page.wait_for_timeout(SETTLE_MS)

    return visit


def first_row(path: str, tab: str = "") -> Visit:
    """Return a visit of the page of the first row of a list, and of one of its tabs."""

    def visit(page: Page) -> None:
        at(path)(page)
        _rows(page).nth(1).click()
        page.wait_for_timeout(SETTLE_MS)
        if tab:
            page.get_by_role("link", name=tab, exact=True).click()
            page.wait_for_timeout(SETTLE_MS)

    return visit


def pressing(path: str, *buttons: str) -> Visit:
    """Return a visit of an address where buttons are pressed one after the other."""

    def visit(page: Page) -> None:
        at(path)(page)
        for button in buttons:
            page.get_by_role("button", name=button).first.click()
            page.wait_for_timeout(SETTLE_MS)

    return visit


def filling(path: str, label: str, text: str) -> Visit:
    """Return a visit of an address where a field is filled in."""

    def visit(page: Page) -> None:
        at(path)(page)
        page.get_by_label(label, exact=True).fill(text)
        page.wait_for_timeout(SETTLE_MS)

    return visit


def _rows(page: Page) -> Locator:
    return page.get_by_role("grid").or_(page.get_by_role("treegrid")).get_by_role("row")


def _form_problem(page: Page) -> None:
    at(f"/queues?queue={QUEUE}")(page)
    page.get_by_label("GPU quota", exact=True).fill("5x")
    page.wait_for_timeout(SETTLE_MS)


def _draft(page: Page) -> None:
    """Draft two edits, if the draft does not hold them yet."""
    for queue, quota in ((QUEUE, "4"), (SIBLING, "14")):
        at(f"/queues?queue={queue}")(page)
        form = page.get_by_role("form")
        if form.get_by_text("This queue has edits in the draft.").count() == 0:
            form.get_by_label("GPU quota", exact=True).fill(quota)
            form.get_by_role("button", name="Add to draft").click()
        form.get_by_text("This queue has edits in the draft.").wait_for()


def _draft_in_tree(page: Page) -> None:
    _draft(page)
    at("/queues")(page)


def _review(page: Page) -> None:
    """Look at what the draft would do."""
    _draft_in_tree(page)
    page.get_by_role("region", name="Draft").get_by_role("link", name="Review").click()
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_role("region", name="Preview").wait_for()


def _delete_draft(page: Page) -> None:
    page.get_by_role("button", name="Delete draft").click()
    page.wait_for_url("**/changes")


def _search(page: Page) -> None:
    pressing("/", "Search everything")(page)
    page.get_by_role("textbox", name="Queue, workload, pod").fill("h100")
    page.wait_for_timeout(SETTLE_MS)


def _keyboard_help(page: Page) -> None:
    at("/")(page)
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard").wait_for()


def _device(page: Page) -> None:
    at(f"/nodes?q={NODE}")(page)
    page.locator(f'[data-cell^="{NODE}/"]').first.click()
    page.get_by_role("dialog").wait_for()


def _hold(page: Page) -> None:
    first_row("/workloads?state=running")(page)
    page.get_by_role("button", name="Hold…").click()
    page.wait_for_timeout(SETTLE_MS)


def _table_of_chart(page: Page) -> None:
    at("/scheduler")(page)
    page.get_by_role("button", name="Show as table").first.click()


def _simulation(page: Page) -> None:
    """Ask for a workload that needs room; the answers of earlier runs stay below it."""
    pressing("/simulate", "Add a workload")(page)
    page.get_by_role("combobox", name="Queue").click()
    page.get_by_role("option").first.click()
    page.get_by_label("GPUs per pod").fill("8")
    page.get_by_role("button", name="Simulate", exact=True).click()
    page.wait_for_url(re.compile(r"/simulate/\d+"))
    page.wait_for_timeout(SETTLE_MS)


def _shard_form(page: Page) -> None:
    """Change an option of the shard, without saving it."""
    at("/settings/shards")(page)
    page.get_by_label("Weight of past use").fill("2.5")
    page.wait_for_timeout(SETTLE_MS)


def _shard_review(page: Page) -> None:
    _shard_form(page)
    page.get_by_role("button", name="Review…").click()
    page.wait_for_timeout(SETTLE_MS)


def _first_steps(page: Page) -> None:
    """Show the overview as a new installation does, by frames of the live connection that say so."""
    _rewriting_frames(page, "/?new", _as_new)


def _stale(page: Page) -> None:
    """Show a page whose server has not heard from the cluster for long."""
    _rewriting_frames(page, "/queues?stale", _as_old)


def _rewriting_frames(page: Page, path: str, rewrite: Callable[[str], str]) -> None:
    """Visit an address where all frames of the live connection are rewritten; others stay as they are."""

    def connect(to_page: WebSocketRoute) -> None:
        to_server = to_page.connect_to_server()
        to_page.on_message(to_server.send)
        if page.url.endswith(path):
            to_server.on_message(lambda frame: to_page.send(rewrite(str(frame))))

    page.route_web_socket("**/api/v1/live", connect)
    at(path)(page)


def _as_new(text: str) -> str:
    frame = json.loads(text)
    for row in frame.get("items", []):
        if "sessions" in row and "workloads" in row:
            row.update(NOTHING_YET)
    if frame["t"] == "delta":
        frame["up"] = []
    return json.dumps(frame)


def _as_old(text: str) -> str:
    frame = json.loads(text)
    if frame.get("asOf"):
        frame["asOf"]["time"] = "2020-01-01T00:00:00.000Z"
    return json.dumps(frame)


def _log_in(page: Page) -> None:
    """Show the log-in page without logging out, by a request without cookies."""
    cookies = page.context.cookies()
    page.context.clear_cookies()
    at("/login")(page)
    page.context.add_cookies(cookies)  # type: ignore[arg-type]  # a cookie that was read can be set


VIEWS: Mapping[str, Visit] = {
    "login": _log_in,
    "overview": at("/"),
    "first-steps": _first_steps,
    "queues": at("/queues"),
    "queues-icicle": at("/queues?view=icicle"),
    "queues-fairness": at("/queues?view=fairness"),
    "queue-form": at(f"/queues?queue={QUEUE}"),
    "queue-form-changed": filling(f"/queues?queue={QUEUE}", "GPU quota", "4"),
    "queue-form-problem": _form_problem,
    "queue-new": pressing("/queues", "New queue"),
    "queue-move": pressing(f"/queues?queue={QUEUE}", "Move…"),
    "queue-delete": pressing(f"/queues?queue={QUEUE}", "Delete…"),
    "queue-children": pressing(f"/queues?queue={PARENT}", "Edit children…"),
    "queue": at(f"/queues/{QUEUE}"),
    "queue-share": at(f"/queues/{QUEUE}/share"),
    "queue-workloads": at(f"/queues/{QUEUE}/workloads"),
    "queue-history": at(f"/queues/{QUEUE}/history?range=1h"),
    "queue-access": at(f"/queues/{QUEUE}/access"),
    "queue-yaml": at(f"/queues/{QUEUE}/yaml"),
    "workloads": at("/workloads"),
    "workload": first_row("/workloads"),
    "workload-pending": first_row("/workloads?state=pending"),
    "workload-timeline": first_row("/workloads", "Timeline"),
    "workload-pods": first_row("/workloads", "Pods"),
    "workload-placement": first_row("/workloads?state=running", "Placement"),
    "workload-yaml": first_row("/workloads", "YAML"),
    "workload-hold": _hold,
    "nodes": at("/nodes"),
    "nodes-idle": at("/nodes?idle=true"),
    "device": _device,
    "node": at(f"/nodes/{NODE}"),
    "node-yaml": at(f"/nodes/{NODE}/yaml"),
    "topology": at("/topology"),
    "scheduler": at("/scheduler"),
    "scheduler-table": _table_of_chart,
    "session": first_row("/scheduler"),
    "evictions": at("/scheduler/evictions"),
    "order": at("/scheduler/order"),
    "binds": at("/scheduler/binds"),
    "simulate": at("/simulate"),
    "simulation": _simulation,
    "draft": _draft_in_tree,
    "review": _review,
    "changes": at("/changes"),
    "usage": at("/usage?range=24h"),
    "audit": at("/audit"),
    "tokens": at("/settings"),
    "token-new": pressing("/settings", "New token"),
    "users": at("/settings/users"),
    "user-new": pressing("/settings/users", "New user"),
    "shards": at("/settings/shards"),
    "policies": at("/settings/policies"),
    "prices": at("/settings/prices"),
    "price-new": pressing("/settings/prices", "New price"),
    "notifications": at("/settings/notifications"),
    "notification-new": pressing("/settings/notifications", "New webhook"),
    "shard-new": pressing("/settings/shards", "New shard"),
    "shard-changed": _shard_form,
    "shard-review": _shard_review,
    "shard-json": pressing("/settings/shards", "Edit as JSON"),
    "search": _search,
    "keyboard": _keyboard_help,
    "user-menu": pressing("/", "You"),
    "theme-menu": pressing("/", "Theme"),
    "live-menu": pressing("/", "Live"),
    "stale": _stale,
    "help": at("/help"),
    "not-found": at("/no-such-page"),
    "denied": at("/denied"),
    "offline": at("/offline"),
}

#: What is taken back after the picture.
AFTERWARDS: Mapping[str, Visit] = {"review": _delete_draft}
