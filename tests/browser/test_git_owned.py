"""A queue that a GitOps controller owns: seen as such, locked with the reason, and not overwritten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import manifests
from tests.browser.people import apply_as, call, read, spec_of
from tests.integration.stack import Stack

OWNED, OURS = "browser-git", "browser-git-ours"
MANAGER = "argocd-controller"


@pytest.fixture(scope="module")
def owned(stack: Stack) -> Iterator[Stack]:
    apply_as(stack, MANAGER, manifests.queue(OWNED, quota=4))
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(OURS, quota=4))
    yield stack
    stack.kubectl("delete", "queue", OWNED, OURS)


def test_the_form_of_a_git_owned_queue_opens_locked_and_names_the_owner(owned: Stack, page: Page):
    page.goto("/queues")
    row = page.get_by_role("row", name=OWNED).first
    expect(row.get_by_label(f"{MANAGER} manages this queue")).to_be_visible()
    row.click()
    form = page.get_by_role("form", name=f"Edit {OWNED}")
    expect(form).to_contain_text(f"{MANAGER} manages this queue.")
    expect(form.get_by_label("GPU quota", exact=True)).to_be_disabled()
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    for action in ("Move…", "Delete…"):
        expect(page.get_by_role("button", name=action)).to_have_count(0)


def test_a_git_owned_queue_is_not_dragged_away(owned: Stack, page: Page):
    page.goto("/queues")
    page.get_by_role("row", name=OWNED).first.drag_to(page.get_by_role("row", name=OURS))
    row = page.get_by_role("row", name=OURS)
    row.focus()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "parentQueue" not in spec_of(owned, OWNED)


def test_rest_refuses_the_edit_too_and_names_the_owner(owned: Stack, page: Page):
    page.goto("/queues")
    version = read(page, f"/queues/{OWNED}")["etag"]
    edit = {"quota": {"gpu": 6}}
    status, problem = call(page, "PUT", f"/queues/{OWNED}?fieldManager=kaiweb-dashboard", edit)
    assert (status, problem["type"].rsplit("/", 1)[1]) == (409, "field-owned")
    assert MANAGER in problem["detail"]
    assert read(page, f"/queues/{OWNED}")["etag"] == version
    assert spec_of(owned, OWNED)["resources"]["gpu"]["quota"] == 4
