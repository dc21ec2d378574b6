"""Editing a queue in the browser changes it in the cluster, and overwrites no concurrent edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import manifests
from tests.browser.test_accessibility import assert_clean
from tests.integration.stack import Stack, wait_until

QUEUE = "browser-lab"


@pytest.fixture
def lab(stack: Stack) -> Iterator[Stack]:
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=8, limit=16))
    yield stack
    stack.kubectl("delete", "queue", QUEUE)


def _gpu(stack: Stack) -> dict[str, Any]:
    spec: dict[str, Any] = stack.objects("queue", QUEUE)[0]["spec"]
    gpu: dict[str, Any] = spec["resources"]["gpu"]
    return gpu


def _patch(stack: Stack, gpu: dict[str, Any]) -> None:
    patch = json.dumps({"spec": {"resources": {"gpu": gpu}}})
    stack.kubectl("patch", "queue", QUEUE, "--type=merge", "-p", patch)


def _row(page: Page) -> Locator:
    return page.get_by_role("row", name=QUEUE)


def _open(page: Page) -> Locator:
    page.goto("/queues")
    _row(page).click()
    form = page.get_by_role("form", name=f"Edit {QUEUE}")
    expect(form).to_be_visible()
    return form


def _choose(form: Locator, field: str, choice: str) -> None:
    form.get_by_role("radiogroup", name=f"{field}: kind").get_by_text(choice, exact=True).click()


def test_an_edited_quota_reaches_the_cluster_and_the_row(lab: Stack, page: Page):
    form = _open(page)
    form.get_by_label("GPU quota", exact=True).fill("12.5")
    expect(form.get_by_role("status")).to_have_text("1 field changed")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved")).to_be_visible()
    assert _gpu(lab)["quota"] == 12.5
    page.keyboard.press("Escape")
    expect(_row(page).get_by_role("gridcell").nth(0)).to_have_text("12.5")


@pytest.mark.parametrize("width", [1280, 390])
def test_two_saves_in_a_row_both_reach_the_cluster(lab: Stack, page: Page, width: int):
    page.set_viewport_size({"width": width, "height": 844})
    form = _open(page)
    quota = form.get_by_label("GPU quota", exact=True)
    for amount in (9, 10):
        quota.fill(str(amount))
        form.get_by_role("button", name="Save").click()
        # The notification of the first save must not cover the button of the second.
        expect(page.get_by_text("Saved").first).to_be_visible()
    wait_until(lambda: _gpu(lab)["quota"] == 10, what="the second quota", stack=lab)
    expect(form.get_by_role("status")).to_have_text("No changes")


def test_a_save_without_an_answer_is_reported_as_slow(lab: Stack, page: Page):
    page.clock.install()
    form = _open(page)
    form.get_by_label("GPU quota", exact=True).fill("9")
    page.route(f"**/api/v1/queues/{QUEUE}", lambda route: None)  # never answered
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("status")).to_have_text("Saving…")
    page.clock.fast_forward(10_000)
    expect(form.get_by_role("status")).to_have_text(
        "The server has not answered yet. Your changes are kept."
    )


def test_value_unlimited_and_unset_are_three_different_things(lab: Stack, page: Page):
    form = _open(page)
    _choose(form, "GPU limit", "Unlimited")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("status")).to_have_text("No changes")
    assert _gpu(lab)["limit"] == -1
    _choose(form, "GPU limit", "Unset")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("status")).to_have_text("No changes")
    assert "limit" not in _gpu(lab)
    _choose(form, "GPU limit", "Value")
    expect(form.get_by_text("Enter a number, or choose unlimited or unset.")).to_be_visible()
    expect(form.get_by_role("button", name="Save")).to_be_disabled()


def test_a_negative_quota_cannot_be_saved(lab: Stack, page: Page):
    form = _open(page)
    form.get_by_label("GPU quota", exact=True).fill("-3")
    expect(form.get_by_text("Must not be negative.")).to_be_visible()
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    assert _gpu(lab)["quota"] == 8


def test_the_server_warns_while_typing(lab: Stack, page: Page):
    form = _open(page)
    form.get_by_label("GPU quota", exact=True).fill("20")
    # The quota is above the queue's own limit of 16: legal, and worth a word.
    expect(form.get_by_text("limit", exact=False).filter(has_text="20")).to_be_visible()
    expect(form.get_by_role("button", name="Save")).to_be_enabled()


def test_others_changes_to_other_fields_are_merged_without_asking(lab: Stack, page: Page):
    form = _open(page)
    form.get_by_label("GPU quota", exact=True).fill("10")
    _patch(lab, {"limit": 40})
    expect(form.get_by_label("GPU limit", exact=True)).to_have_value("40")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved")).to_be_visible()
    gpu = _gpu(lab)
    assert (gpu["quota"], gpu["limit"]) == (10, 40)


@pytest.mark.parametrize(("keep", "expected"), [("Mine", 11), ("Theirs", 7)])
def test_a_field_both_changed_is_asked_about(lab: Stack, page: Page, keep: str, expected: float):
    form = _open(page)
    form.get_by_label("GPU quota", exact=True).fill("11")
    _patch(lab, {"quota": 7})
    form.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Someone else changed this queue")
    expect(dialog.get_by_role("row", name="GPU quota")).to_contain_text("8 GPUs7 GPUs11 GPUs")
    assert_clean(page)
    assert _gpu(lab)["quota"] == 7
    dialog.get_by_text(keep, exact=True).last.click()
    dialog.get_by_role("button", name="Save the merged queue").click()
    expect(dialog).to_be_hidden()
    expect(form.get_by_role("status")).to_have_text("No changes")
    wait_until(lambda: _gpu(lab)["quota"] == expected, what=f"a quota of {expected}", stack=lab)
    expect(form.get_by_label("GPU quota", exact=True)).to_have_value(str(expected))


def test_two_people_in_two_browsers_lose_nothing_of_each_other(
    lab: Stack, page: Page, browser: Browser, login_state: Path
):
    other = browser.new_context(base_url=lab.url, storage_state=login_state)
    forms = [_open(page), _open(other.new_page())]
    for form, field in zip(forms, ("GPU quota", "GPU limit"), strict=True):
        form.get_by_label(field, exact=True).fill("9")
    for form in forms:
        form.get_by_role("button", name="Save").click()
        expect(form.get_by_role("status")).to_have_text("No changes")
    assert (_gpu(lab)["quota"], _gpu(lab)["limit"]) == (9, 9)
    for form, quota in zip(forms, ("3", "4"), strict=True):
        form.get_by_label("GPU quota", exact=True).fill(quota)
    forms[0].get_by_role("button", name="Save").click()
    expect(forms[0].get_by_role("status")).to_have_text("No changes")
    forms[1].get_by_role("button", name="Save").click()
    conflict = other.pages[0].get_by_role("dialog", name="Someone else changed this queue")
    expect(conflict.get_by_role("row", name="GPU quota")).to_contain_text("9 GPUs3 GPUs4 GPUs")
    assert _gpu(lab)["quota"] == 3
    other.close()


def test_the_tree_is_walked_and_edited_by_keyboard_alone(lab: Stack, page: Page):
    page.goto("/queues")
    parent = page.get_by_role("row", name="default-parent-queue")
    child = page.get_by_role("row", name="default-queue")
    expect(child).to_have_attribute("aria-level", "2")
    parent.focus()
    page.keyboard.press("ArrowLeft")
    expect(parent).to_have_attribute("aria-expanded", "false")
    expect(child).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(child).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(child).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("form", name="Edit default-queue")).to_be_visible()
    page.keyboard.press("Escape")
    expect(child).to_be_focused()


def test_a_queue_is_created_moved_and_deleted_in_the_page(lab: Stack, page: Page):
    page.goto("/queues")
    page.get_by_role("button", name="New queue").click()
    dialog = page.get_by_role("dialog", name="New queue")
    dialog.get_by_role("textbox", name="Name").first.fill("made-here")
    dialog.get_by_label("GPU quota", exact=True).fill("2")
    dialog.get_by_role("button", name="Create queue").click()
    form = page.get_by_role("form", name="Edit made-here")
    expect(form.get_by_label("GPU quota", exact=True)).to_have_value("2")
    form.get_by_label("Display name").fill("Made here")
    form.get_by_label("Minimum runtime before reclaim").fill("5m")
    form.get_by_label("Labels").fill("team=a, cost=7")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("status")).to_have_text("No changes")

    page.get_by_role("button", name="Move…").click()
    move = page.get_by_role("dialog", name="Move made-here")
    move.get_by_role("combobox", name="Parent queue").fill(QUEUE)
    page.get_by_role("option", name=QUEUE).click()
    move.get_by_role("button", name="Move queue").click()
    expect(move).to_be_hidden()
    queue = lab.objects("queue", "made-here")[0]
    spec, labels = queue["spec"], queue["metadata"]["labels"]
    assert (labels["team"], labels["cost"]) == ("a", "7")
    assert (spec["parentQueue"], spec["displayName"]) == (QUEUE, "Made here")
    assert (spec["reclaimMinRuntime"], spec["resources"]["gpu"]["quota"]) == ("5m", 2)

    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete queue").click()
    expect(page.get_by_role("row", name="Made here")).to_have_count(0)
    wait_until(
        lambda: "made-here" not in {q["metadata"]["name"] for q in lab.objects("queues")},
        what="the deletion",
        stack=lab,
    )


def test_a_queue_is_moved_by_drag_and_by_key(lab: Stack, page: Page):
    lab.kubectl("apply", "-f", "-", stdin=manifests.queue("moved-here", quota=1))
    page.goto("/queues")
    move = page.get_by_role("dialog", name="Move moved-here")
    page.get_by_role("row", name="moved-here").drag_to(_row(page))
    expect(move.get_by_role("combobox", name="Parent queue")).to_have_value(QUEUE)
    expect(move.get_by_role("region", name="Preview")).to_be_visible()
    move.get_by_role("button", name="Move queue").click()
    expect(page.get_by_role("row", name="moved-here")).to_have_attribute("aria-level", "2")
    assert lab.objects("queue", "moved-here")[0]["spec"]["parentQueue"] == QUEUE

    page.get_by_role("row", name="moved-here").focus()
    page.keyboard.press("m")
    expect(move.get_by_role("combobox", name="Parent queue")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("None")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(move.get_by_role("button", name="Move queue")).to_be_enabled()
    move.get_by_role("button", name="Move queue").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("row", name="moved-here")).to_have_attribute("aria-level", "1")
    assert "parentQueue" not in lab.objects("queue", "moved-here")[0]["spec"]
    lab.kubectl("delete", "queue", "moved-here")


def test_a_parent_with_children_is_not_deleted_and_the_dialog_says_why(lab: Stack, page: Page):
    page.goto("/queues?queue=default-parent-queue")
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete default-parent-queue?")
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_role("button", name="Delete queue")).to_be_disabled()


def test_a_form_with_changes_asks_before_it_closes(lab: Stack, page: Page):
    form = _open(page)
    form.get_by_label("GPU quota", exact=True).fill("9")
    expect(form.get_by_role("button", name="Save")).to_be_enabled()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keep editing").click()
    expect(form.get_by_label("GPU quota", exact=True)).to_have_value("9")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Discard").click()
    expect(form).to_be_hidden()
    assert _gpu(lab)["quota"] == 8


def test_a_link_to_a_queue_that_does_not_exist_says_so(stack: Stack, page: Page):
    page.goto("/queues?queue=no-such-queue")
    expect(page.get_by_text('There is no queue "no-such-queue"')).to_be_visible()


@pytest.fixture
def contested(stack: Stack) -> Iterator[Stack]:
    """One queue holds all GPUs of a node without any quota, the other one waits for them."""
    for queue in ("browser-holder", "browser-asker"):
        stack.kubectl("apply", "-f", "-", stdin=manifests.queue(queue, quota=0))
    stack.kubectl("apply", "-f", "-", stdin=manifests.pod("holds", queue="browser-holder", gpus=8))
    wait_until(
        lambda: stack.objects("pod", "holds")[0]["status"].get("phase") == "Running",
        what="the holder to run",
        stack=stack,
    )
    stack.kubectl("apply", "-f", "-", stdin=manifests.pod("asks", queue="browser-asker", gpus=8))
    yield stack
    stack.kubectl("delete", "pod", "holds", "asks", "--now", "--ignore-not-found")
    for queue in ("browser-holder", "browser-asker"):
        stack.kubectl("delete", "queue", queue)


def test_an_edit_that_evicts_names_who_and_asks_before_it_is_saved(contested: Stack, page: Page):
    page.goto("/queues?queue=browser-asker")
    form = page.get_by_role("form", name="Edit browser-asker")
    quota = form.get_by_label("GPU quota", exact=True)
    quota.fill("8")
    form.get_by_role("button", name="Preview").click()
    preview = form.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("This change evicts pods that would otherwise stay.")
    expect(preview).to_contain_text("Evicted: 1 pod, 8 GPUs")
    expect(preview.get_by_role("link", name="holds").first).to_be_visible()
    form.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Some workloads lose their place")
    dialog.get_by_role("button", name="Keep editing").click()
    gpu = contested.objects("queue", "browser-asker")[0]["spec"]["resources"]["gpu"]
    assert gpu["quota"] == 0
    form.get_by_role("button", name="Save").click()
    dialog.get_by_role("button", name="Save and evict").click()
    expect(form.get_by_role("status")).to_have_text("No changes")
    wait_until(
        lambda: contested.objects("pod", "asks")[0]["status"].get("phase") == "Running",
        what="what the preview said: the asker runs in the place of the holder",
        stack=contested,
    )
