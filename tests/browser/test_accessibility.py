"""axe finds nothing on any page and state, in both themes and forced colors (WCAG 2.2 AA and its best practices)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser import manifests
from tests.browser.people import open_profile
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
    "/settings/shards": "What it does",
    "/settings/policies": "Which changes must another administrator approve?",
    "/settings/prices": "Prices of a GPU-hour",
    "/settings/notifications": "Each gets a JSON message",
    "/audit": "Every write, by page",
    "/usage": "Who used it",
    f"/queues/{QUEUE}": "Largest workloads",
    f"/queues/{QUEUE}/share": "Siblings",
    f"/queues/{QUEUE}/workloads": "waits",
    f"/queues/{QUEUE}/history": "Waiting times and evictions by day",
    f"/queues/{QUEUE}/access": "Who may edit this queue",
    f"/queues/{QUEUE}/yaml": "as the cluster has it now",
    "/workloads/waits/timeline": "Newest first",
    "/workloads/waits/placement": "Where its pods are",
    "/workloads/runs/placement": "Placed there because",
    "/workloads/waits/yaml": "as the cluster has it now",
    f"/nodes/{manifests.NODE}": manifests.NODE,
    f"/nodes/{manifests.NODE}/yaml": "as the cluster has it now",
    "/queues?view=icicle": "above its share",
    "/queues?view=fairness": "Top-level queues",
    "/help": "Help",
    "/topology": "Topology",
    "/scheduler/evictions": "Evictions",
    "/scheduler/order": "Order",
    "/scheduler/binds": "Bind requests",
    "/denied": "You may not see this",
    "/offline": "What this browser still has",
    "/no-such-page": "Page not found",
}


@pytest.fixture(scope="module")
def filled(stack: Stack) -> Iterator[str]:
    """A queue with a running and a waiting pod: pages without rows prove little. Yields the path of the latter."""
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
    yield _path_of(stack, "waits")
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


def _open_user_menu(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="You").click()
    expect(page.get_by_role("menuitem", name="Sign out")).to_be_visible()


def _open_theme_menu(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Theme").click()
    expect(page.get_by_role("menuitem", name="Dark")).to_be_visible()


def _open_live_pill(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Live", exact=True).click()
    expect(page.get_by_role("button", name="Pause updates")).to_be_visible()


def _open_select(page: Page) -> None:
    page.goto("/workloads")
    page.get_by_role("combobox", name="Any state").click()
    expect(page.get_by_role("option", name="Pending")).to_be_visible()


def _open_device(page: Page) -> None:
    page.goto(f"/nodes?q={manifests.NODE}")
    page.locator(f'[data-cell^="{manifests.NODE}/"][data-state="whole"]').first.click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _open_keyboard_help(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()


def _show_table_of_chart(page: Page) -> None:
    page.goto("/scheduler")
    page.get_by_role("button", name="Show as table").first.click()
    expect(page.get_by_role("button", name="Show as chart")).to_be_visible()


def _save(page: Page) -> None:
    page.goto(f"/queues?queue={QUEUE}")
    quota = page.get_by_label("GPU quota", exact=True)
    quota.fill("6" if quota.input_value() == "4" else "4")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved")).to_be_visible()


def _preview(page: Page) -> None:
    _change_field(page)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview")).to_be_visible()


STATES = [
    _open_new_queue,
    _open_move,
    _open_delete,
    _leave_changed_form,
    _open_search,
    _open_hold,
    _open_children,
    _open_user_menu,
    _open_theme_menu,
    _open_live_pill,
    _open_select,
    _open_device,
    _open_keyboard_help,
    _show_table_of_chart,
    _save,
    _preview,
]


def _path_of(stack: Stack, pod: str) -> str:
    names = [
        group["metadata"]["name"] for group in stack.objects("podgroups", "-n", manifests.NAMESPACE)
    ]
    return f"/workloads/{manifests.NAMESPACE}/{next(name for name in names if pod in name)}"


@pytest.fixture(scope="module")
def reader(browser: Browser, stack: Stack, login_state: Path) -> Iterator[Page]:
    context = open_profile(browser, stack, storage_state=login_state)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_and_nothing_is_wider_than_a_phone(
    filled: str, reader: Page, stack: Stack, path: str
):
    address = path.replace("/workloads/waits", filled)
    if "/workloads/runs" in path:
        address = path.replace("/workloads/runs", _path_of(stack, "runs"))
    reader.goto(address)
    expect(reader.get_by_text(PAGES[path]).first).to_be_visible()
    assert_clean_in_both_themes(reader)
    reader.set_viewport_size({"width": 320, "height": 800})
    assert reader.evaluate("document.documentElement.scrollWidth") <= 320
    assert_clean(reader, only=("scrollable-region-focusable", "target-size"))
    reader.set_viewport_size({"width": 1280, "height": 900})


#: What shows an amount or a state by a colored area, by page.
DRAWN = {
    "/": "main [role=img] > span",
    "/queues": "[role=treegrid] [role=gridcell] [role=img]",
    "/nodes": '[data-cell][data-state="whole"]',
}


@pytest.mark.parametrize("path", DRAWN)
def test_in_forced_colors_what_is_drawn_keeps_its_colors(filled: str, reader: Page, path: str):
    """The system replaces all backgrounds, except where a style asks to keep them."""
    reader.emulate_media(forced_colors="active", reduced_motion="reduce")
    reader.goto(path)
    drawn = reader.locator(DRAWN[path]).first
    expect(drawn).to_be_attached()
    is_kept = drawn.evaluate(
        """(element) => getComputedStyle(element).forcedColorAdjust === "none"
          || [...element.querySelectorAll("*")].some((each) => getComputedStyle(each).forcedColorAdjust === "none")"""
    )
    reader.emulate_media(forced_colors="none", reduced_motion="reduce")
    assert is_kept


def test_in_forced_colors_the_chosen_result_of_a_search_is_told_apart(filled: str, reader: Page):
    reader.emulate_media(forced_colors="active", reduced_motion="reduce")
    reader.goto("/")
    reader.get_by_role("button", name="Search everything").click()
    reader.get_by_role("textbox", name="Queue, workload, pod").fill(QUEUE)
    expect(reader.get_by_role("option").first).to_be_visible()
    reader.keyboard.press("ArrowDown")
    chosen = reader.locator("[data-combobox-selected]")
    expect(chosen).to_have_count(1)
    outline = chosen.evaluate("(element) => getComputedStyle(element).outlineStyle")
    reader.keyboard.press("Escape")
    reader.emulate_media(forced_colors="none", reduced_motion="reduce")
    assert outline == "solid"


def test_axe_finds_nothing_in_a_form_with_changes(filled: str, reader: Page):
    reader.goto(f"/queues?queue={QUEUE}")
    form = reader.get_by_role("form", name=f"Edit {QUEUE}")
    form.get_by_label("GPU quota", exact=True).fill("5")
    expect(form.get_by_role("status")).to_have_text("1 field changed")
    expect(form.get_by_role("button", name="Save")).to_be_enabled()
    assert_clean_in_both_themes(reader)
    form.get_by_label("GPU quota", exact=True).fill("5x")
    expect(form.get_by_role("status")).to_have_text("Correct 1 field before saving")
    assert_clean_in_both_themes(reader)


@pytest.mark.parametrize("reach", STATES)
def test_axe_finds_nothing_in_a_state(filled: str, reader: Page, reach: Callable[[Page], None]):
    reach(reader)
    # The options of a select hang below the page, outside its landmarks, and belong to their field by `aria-controls`.
    assert_clean_in_both_themes(reader, without=("region",) if reach is _open_select else ())


def test_axe_finds_nothing_on_the_login_page(browser: Browser, stack: Stack):
    for theme in ("light", "dark"):
        context = browser.new_context(base_url=stack.url, color_scheme=theme)
        page = context.new_page()
        page.goto("/login")
        expect(page.get_by_label("Password")).to_be_visible()
        assert_clean(page)
        context.close()


def assert_clean_in_both_themes(page: Page, without: Sequence[str] = ()) -> None:
    """Check the page as it is now: by all rules in the light theme, and its colors in the dark one."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    assert_clean(page, without=without)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert_clean(page, only=("color-contrast",))
    page.emulate_media(color_scheme="light", reduced_motion="reduce")


def assert_clean(page: Page, only: Sequence[str] = (), without: Sequence[str] = ()) -> None:
    rules = {"type": "rule", "values": list(only)} if only else {"type": "tag", "values": TAGS}
    options = {
        "runOnly": rules,
        "rules": {rule: {"enabled": False} for rule in without},
        "resultTypes": ["violations"],
    }
    violations = Axe().run(page, options=options).response["violations"]
    problems = [f"{fault['id']}: {fault['nodes'][0]['html']}" for fault in violations]
    assert problems == []
