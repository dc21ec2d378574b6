"""axe finds nothing in what opens over a page or changes it: dialogs, menus, forms with changes, the tray of the draft."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import manifests
from tests.browser.test_accessibility import assert_clean_in_both_themes
from tests.integration.stack import Stack

QUEUE = "browser-dialogs"
PHONE = {"width": 320, "height": 800}


@pytest.fixture(scope="module", autouse=True)
def queue(stack: Stack) -> Iterator[None]:
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4))
    yield
    stack.kubectl("delete", "queue", QUEUE)


def _press(page: Page, path: str, button: str) -> None:
    page.goto(path)
    page.get_by_role("button", name=button, exact=True).first.click()


def _open_new_shard(page: Page) -> None:
    _press(page, "/settings/shards", "New shard")
    dialog = page.get_by_role("dialog", name="New shard")
    dialog.get_by_role("textbox", name="Name").fill("Not A Name")


def _change_shard(page: Page) -> None:
    page.goto("/settings/shards")
    page.get_by_label("Weight of past use").fill("2.5")
    expect(page.get_by_text("1 edited setting")).to_be_visible()


def _mistype_shard(page: Page) -> None:
    page.goto("/settings/shards")
    page.get_by_label("Weight of past use").fill("much")
    expect(page.get_by_text("Expected a number")).to_be_visible()


def _review_shard(page: Page) -> None:
    _change_shard(page)
    page.get_by_role("button", name="Review…").click()
    dialog = page.get_by_role("dialog", name="Change the shard default")
    expect(dialog.get_by_text("kValue").first).to_be_visible()


def _refuse_shard(page: Page) -> None:
    _press(page, "/settings/shards", "Edit as JSON")
    page.get_by_role("textbox", name="Spec").fill('{"placementStrategy": {"gpu": "best"}}')
    page.get_by_role("dialog").get_by_role("button", name="Review…").click()
    expect(page.get_by_text("The scheduler would refuse this")).to_be_visible()


def _edit_shard_as_json(page: Page) -> None:
    _press(page, "/settings/shards", "Edit as JSON")
    page.get_by_role("textbox", name="Spec").fill("{")
    expect(page.get_by_text("Expected one JSON object")).to_be_visible()


def _delete_shard(page: Page) -> None:
    _press(page, "/settings/shards", "Delete shard")
    expect(page.get_by_text("Type default to confirm")).to_be_visible()


def _open_new_token(page: Page) -> None:
    _press(page, "/settings/tokens", "New token")
    expect(page.get_by_role("button", name="Create token")).to_be_visible()


def _open_new_user(page: Page) -> None:
    _press(page, "/settings/users", "New user")
    expect(page.get_by_role("button", name="Create user")).to_be_visible()


def _open_add_role(page: Page) -> None:
    page.goto("/settings/users")
    page.get_by_role("button", name="Add a role to").first.click()
    expect(page.get_by_role("dialog").get_by_role("combobox").first).to_be_visible()


def _open_columns(page: Page) -> None:
    _press(page, "/workloads", "Choose columns")
    expect(page.get_by_role("menuitemcheckbox", name="Priority")).to_be_visible()


def _open_undo(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    page.keyboard.press("z")
    expect(page.get_by_role("dialog")).to_be_visible()


def _edit_cell(page: Page) -> None:
    page.goto("/queues")
    row = page.get_by_role("row", name=QUEUE)
    row.get_by_role("gridcell").first.click()
    row.get_by_role("textbox").fill("many")
    expect(row.get_by_role("textbox")).to_have_attribute("aria-invalid", "true")


def _open_options_in_dialog(page: Page) -> None:
    _press(page, f"/queues?queue={QUEUE}", "Move…")
    expect(page.get_by_role("option", name="default-parent-queue")).to_be_visible()


STATES = [
    _open_new_shard,
    _change_shard,
    _mistype_shard,
    _review_shard,
    _refuse_shard,
    _edit_shard_as_json,
    _delete_shard,
    _open_new_token,
    _open_new_user,
    _open_add_role,
    _open_columns,
    _open_undo,
    _edit_cell,
    _open_options_in_dialog,
]


@pytest.mark.parametrize("reach", STATES)
def test_axe_finds_nothing_in_a_state_and_it_fits_on_a_phone(
    page: Page, reach: Callable[[Page], None]
):
    reach(page)
    assert_clean_in_both_themes(page)
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_all_options_of_a_select_in_a_dialog_can_be_seen(page: Page):
    _open_options_in_dialog(page)
    options = page.get_by_role("listbox")
    box = options.bounding_box()
    assert box is not None
    bottom = [box["x"] + box["width"] / 2, box["y"] + box["height"] - 4]
    is_seen = "([x, y]) => document.elementFromPoint(x, y)?.closest('[role=listbox]') !== null"
    assert page.evaluate(is_seen, bottom)


def test_axe_finds_nothing_in_the_tray_of_the_draft(page: Page):
    page.goto(f"/queues?queue={QUEUE}")
    form = page.get_by_role("form", name=f"Edit {QUEUE}")
    form.get_by_label("GPU quota", exact=True).fill("6")
    form.get_by_role("button", name="Add to draft").click()
    expect(form.get_by_text("This queue has edits in the draft.")).to_be_visible()
    assert_clean_in_both_themes(page)
    page.goto("/queues")
    tray = page.get_by_role("region", name="Draft")
    expect(tray).to_contain_text(QUEUE)
    expect(page.get_by_role("row", name=QUEUE)).to_contain_text("draft")
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert_clean_in_both_themes(page)
    tray.get_by_role("button", name="Discard").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert_clean_in_both_themes(page)
    dialog.get_by_role("button", name="Discard").click()
    expect(tray).to_have_count(0)


@pytest.fixture
def running_pod(stack: Stack) -> Iterator[None]:
    stack.kubectl("apply", "-f", "-", stdin=manifests.pod("opens", queue=QUEUE))
    yield
    stack.kubectl("delete", "pod", "opens", "-n", manifests.NAMESPACE, "--now")


@pytest.mark.parametrize("path", ["/workloads", "/scheduler"])
def test_the_focus_comes_back_to_the_row_that_was_opened(running_pod: None, page: Page, path: str):
    page.goto(path)
    row = page.get_by_role("grid").locator("[data-index]").first
    row.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("grid")).to_have_count(0)
    expect(page.locator("main")).to_be_focused()
    page.go_back()
    expect(page.get_by_role("grid").locator(":focus")).to_have_count(1)
