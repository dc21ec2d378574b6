"""Everything that the mouse can do to a queue is done here with keys alone: no click, no focus set by the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import manifests
from tests.browser.people import spec_of
from tests.integration.stack import Stack, wait_until

QUEUE, PLACE = "browser-keys", "browser-place"
MOST_TABS = 80


@pytest.fixture
def keys(stack: Stack) -> Iterator[Stack]:
    for name in (QUEUE, PLACE):
        stack.kubectl("apply", "-f", "-", stdin=manifests.queue(name, quota=8))
    yield stack
    stack.kubectl("delete", "queue", QUEUE, PLACE, "--ignore-not-found")


def reach(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    expect(target).to_be_visible()
    for _ in range(MOST_TABS):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} was not reached with {MOST_TABS} times Tab")


def _press(page: Page, target: Locator) -> None:
    reach(page, target)
    expect(target).to_be_enabled()
    page.keyboard.press("Enter")


def _go_to_row(page: Page, name: str) -> None:
    """Go to the tree with Tab, and with the arrow keys to the row."""
    rows = page.get_by_role("treegrid").get_by_role("row")
    expect(page.get_by_role("row", name=name)).to_be_visible()
    for _ in range(MOST_TABS):
        if rows.evaluate_all("all => all.includes(document.activeElement)"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Home")
    for row in rows.all()[1:]:
        expect(row).to_be_focused()
        if row.inner_text().startswith(name):
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"the tree has no row {name}")


def _quota(stack: Stack) -> float:
    quota: float = spec_of(stack, QUEUE)["resources"]["gpu"]["quota"]
    return quota


def test_an_edit_is_drafted_reviewed_previewed_applied_and_undone_with_keys(
    keys: Stack, page: Page
):
    page.goto("/")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("q")
    _go_to_row(page, QUEUE)
    page.keyboard.press("e")
    form = page.get_by_role("form", name=f"Edit {QUEUE}")
    reach(page, form.get_by_label("GPU quota", exact=True))
    page.keyboard.press("Control+A")
    page.keyboard.type("6")
    _press(page, form.get_by_role("button", name="Add to draft"))
    expect(form.get_by_text("This queue has edits in the draft.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("row", name=QUEUE)).to_be_focused()
    _press(page, page.get_by_role("region", name="Draft").get_by_role("link", name="Review"))
    expect(page.get_by_role("row", name="GPU quota 8 GPUs 6 GPUs")).to_be_visible()
    _press(page, page.get_by_role("button", name="Preview", exact=True))
    expect(page.get_by_text("Nothing changes for any workload.")).to_be_visible()
    assert _quota(keys) == 8
    _press(page, page.get_by_role("button", name="Apply", exact=True))
    expect(page.get_by_text("1 of 1 done")).to_be_visible()
    assert _quota(keys) == 6
    _press(page, page.get_by_role("button", name="Undo this change"))
    expect(page.get_by_text("Undone")).to_be_visible(timeout=60_000)
    wait_until(lambda: _quota(keys) == 8, what="the quota from before", stack=keys)


def test_a_queue_is_moved_with_keys_from_the_first_tab_on(keys: Stack, page: Page):
    page.goto("/queues")
    _go_to_row(page, QUEUE)
    page.keyboard.press("m")
    dialog = page.get_by_role("dialog", name=f"Move {QUEUE}")
    parent = dialog.get_by_role("combobox", name="Parent queue")
    expect(parent).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type(PLACE)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("region", name="Preview")).to_be_visible()
    _press(page, dialog.get_by_role("button", name="Move queue"))
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("row", name=QUEUE)).to_have_attribute("aria-level", "2")
    assert spec_of(keys, QUEUE)["parentQueue"] == PLACE
    keys.kubectl("delete", "queue", QUEUE)


def test_a_queue_is_cut_and_pasted_below_another_and_the_move_is_undone_with_keys(
    keys: Stack, page: Page
):
    page.goto("/queues")
    _go_to_row(page, QUEUE)
    page.keyboard.press("x")
    expect(page.get_by_text(f"{QUEUE} is cut.")).to_be_visible()
    _go_to_row(page, PLACE)
    page.keyboard.press("v")
    dialog = page.get_by_role("dialog", name=f"Move {QUEUE}")
    expect(dialog.get_by_role("combobox", name="Parent queue")).to_have_value(PLACE)
    expect(dialog.get_by_role("region", name="Preview")).to_be_visible()
    _press(page, dialog.get_by_role("button", name="Move queue"))
    expect(page.get_by_role("row", name=QUEUE)).to_have_attribute("aria-level", "2")
    _go_to_row(page, QUEUE)
    page.keyboard.press("z")
    question = page.get_by_role("dialog", name="Undo the last change?")
    _press(page, question.get_by_role("button", name="Undo", exact=True))
    # It is previewed before it is written, and a preview takes its time on a busy machine.
    expect(page.get_by_text("Undone")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("row", name=QUEUE)).to_have_attribute("aria-level", "1")
    assert "parentQueue" not in spec_of(keys, QUEUE)


def test_the_list_of_keys_opens_with_a_key_and_gives_the_focus_back(keys: Stack, page: Page):
    page.goto("/queues")
    _go_to_row(page, QUEUE)
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("row", name=QUEUE)).to_be_focused()
