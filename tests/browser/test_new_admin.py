"""A day of a new administrator, who has read nothing: every step by what the pages show, none by a command.

The steps are those of the lists, menus and dialogs; a step that needs an address, a field of the API or a word that no
page explains fails.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import manifests
from tests.browser.people import PASSWORD, logged_in, open_profile, spec_of
from tests.integration.stack import Stack, wait_until

DEPARTMENT, TEAMS = "vision-dept", ("vision-a", "vision-b", "vision-c")
OTHER = "speech-dept"


@pytest.fixture(scope="module")
def admin(stack: Stack, browser: Browser, login_state: Path) -> Iterator[Page]:
    context = open_profile(browser, stack, storage_state=login_state, accept_downloads=True)
    yield context.new_page()
    context.close()
    stack.kubectl("delete", "pod", "--all", "-n", manifests.NAMESPACE, "--now")
    for queue in (*TEAMS, DEPARTMENT, OTHER):
        stack.kubectl("delete", "queue", queue, "--ignore-not-found")


def _new_queue(page: Page, name: str, quota: str) -> None:
    dialog = page.get_by_role("dialog", name="New queue")
    dialog.get_by_label("Name", exact=False).first.fill(name)
    dialog.get_by_label("GPU quota", exact=True).fill(quota)
    dialog.get_by_role("button", name="Create queue").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("form", name=f"Edit {name}")).to_be_visible()


def _close(page: Page) -> None:
    page.get_by_role("button", name="Close").last.click()


def _run(stack: Stack, name: str, queue: str, gpus: int) -> None:
    stack.kubectl("apply", "-f", "-", stdin=manifests.pod(name, queue=queue, gpus=gpus))


def _is_running(stack: Stack, name: str) -> bool:
    return bool(stack.objects("pod", name)[0]["status"].get("phase") == "Running")


def test_1_a_department_with_three_teams_is_created(stack: Stack, admin: Page):
    admin.goto("/")
    admin.get_by_role("link", name="Queues", exact=True).click()
    for name in (DEPARTMENT, OTHER):
        admin.get_by_role("button", name="New queue").click()
        _new_queue(admin, name, "8")
        _close(admin)
    for name in TEAMS:
        admin.get_by_role("row", name=DEPARTMENT).first.click()
        admin.get_by_role("button", name="Add a child queue").click()
        _new_queue(admin, name, "2")
        _close(admin)
    assert [spec_of(stack, name)["parentQueue"] for name in TEAMS] == [DEPARTMENT] * 3
    for name in TEAMS:
        expect(admin.get_by_role("row", name=name)).to_have_attribute("aria-level", "2")


def test_2_a_team_is_moved(stack: Stack, admin: Page):
    admin.get_by_role("row", name=TEAMS[2]).click()
    admin.get_by_role("button", name="Move…").click()
    dialog = admin.get_by_role("dialog", name=f"Move {TEAMS[2]}")
    dialog.get_by_role("combobox", name="Parent queue").click()
    admin.get_by_role("option", name=OTHER).click()
    expect(dialog.get_by_text("Nothing changes for any workload.")).to_be_visible()
    dialog.get_by_role("button", name="Move queue").click()
    expect(dialog).to_be_hidden()
    assert spec_of(stack, TEAMS[2])["parentQueue"] == OTHER


def test_3_a_colleague_gets_the_department(stack: Stack, admin: Page, browser: Browser):
    admin.goto("/")
    admin.get_by_role("link", name="Settings").click()
    admin.get_by_role("link", name="Users and roles").click()
    admin.get_by_role("button", name="New user").click()
    dialog = admin.get_by_role("dialog", name="New user")
    dialog.get_by_label("User name").fill("clara")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Create user").click()
    admin.get_by_role("button", name="Add a role to clara").click()
    dialog = admin.get_by_role("dialog", name="Add a role to clara")
    dialog.get_by_role("combobox", name="Below queue").click()
    admin.get_by_role("option", name=DEPARTMENT).click()
    dialog.get_by_role("button", name="Add role").click()
    expect(admin.get_by_text(f"editor · {DEPARTMENT}")).to_be_visible()
    with logged_in(browser, stack, "clara") as page:
        page.get_by_role("link", name="Queues", exact=True).click()
        page.get_by_role("row", name=TEAMS[0]).click()
        expect(page.get_by_label("GPU quota", exact=True)).to_be_enabled()


def test_4_a_lower_quota_that_evicts_is_previewed_applied_and_undone(stack: Stack, admin: Page):
    _run(stack, "keeps", TEAMS[0], 2)
    _run(stack, "borrows", TEAMS[1], 6)
    for name in ("keeps", "borrows"):
        wait_until(lambda name=name: _is_running(stack, name), what=f"{name} to run", stack=stack)
    _run(stack, "asks", TEAMS[2], 6)
    admin.goto("/")
    admin.get_by_role("link", name="Queues", exact=True).click()
    # The team that asks may claim more, the department that holds the room less.
    admin.get_by_role("row", name=TEAMS[2]).click()
    form = admin.get_by_role("form", name=f"Edit {TEAMS[2]}")
    form.get_by_label("GPU quota", exact=True).fill("6")
    form.get_by_role("button", name="Add to draft").click()
    expect(form.get_by_text("This queue has edits in the draft.")).to_be_visible()
    _close(admin)
    admin.get_by_role("row", name=DEPARTMENT).first.click()
    form = admin.get_by_role("form", name=f"Edit {DEPARTMENT}")
    form.get_by_label("GPU quota", exact=True).fill("2")
    form.get_by_role("button", name="Add to draft").click()
    expect(form.get_by_text("This queue has edits in the draft.")).to_be_visible()
    _close(admin)
    admin.get_by_role("region", name="Draft").get_by_role("link", name="Review").click()
    admin.get_by_role("button", name="Preview", exact=True).click()
    preview = admin.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("evicts")
    expect(preview.get_by_role("link", name="borrows").first).to_be_visible()
    admin.get_by_label("Reason").fill("the speech team needs its share")
    admin.get_by_role("button", name="Apply and evict 1 pod").click()
    expect(admin.get_by_text("2 of 2 done")).to_be_visible()
    wait_until(lambda: _is_running(stack, "asks"), what="the asker to run", stack=stack)
    admin.get_by_role("button", name="Undo this change").click()
    expect(admin.get_by_text("Undone").or_(admin.get_by_text("Undo:")).first).to_be_visible()
    if spec_of(stack, DEPARTMENT)["resources"]["gpu"]["quota"] == 2:
        # The undo evicts too, so it is shown first.
        admin.get_by_label("Reason").fill("it was too much")
        admin.get_by_role("button", name="Apply").click()
    wait_until(
        lambda: spec_of(stack, DEPARTMENT)["resources"]["gpu"]["quota"] == 8,
        what="the quota from before",
        stack=stack,
    )


def test_5_the_owner_of_a_gpu_is_found(stack: Stack, admin: Page):
    admin.goto("/")
    admin.get_by_role("link", name="Nodes", exact=True).click()
    cell = admin.locator(f'[data-cell^="{manifests.NODE}/"][data-state="whole"]').first
    cell.click()
    popover = admin.get_by_role("dialog")
    expect(popover).to_contain_text("queue vision-")
    popover.get_by_role("link").first.click()
    expect(admin.get_by_text("Queue", exact=True).first).to_be_visible()
    expect(admin.locator("main")).to_contain_text("Running")


def test_6_idle_gpus_are_found(stack: Stack, admin: Page):
    admin.goto("/")
    expect(admin.locator("main")).to_contain_text("free")
    admin.get_by_role("link", name="Nodes", exact=True).click()
    admin.get_by_role("switch", name="Only with free GPUs").click()
    expect(admin.get_by_role("gridcell", name="GPU 0: free").first).to_be_visible()
    admin.get_by_role("link", name="Usage").click()
    expect(admin.locator("main")).to_contain_text("Idle")
    expect(admin.locator("main")).to_contain_text("Held but not used")


def test_7_two_queues_are_compared_over_the_last_week(stack: Stack, admin: Page):
    admin.goto("/")
    admin.get_by_role("link", name="Usage").click()
    admin.get_by_role("radiogroup", name="Range").get_by_text("7 days").click()
    for label, queue in (("First queue", TEAMS[0]), ("Second queue", TEAMS[1])):
        admin.get_by_role("combobox", name=label).click()
        admin.get_by_role("option", name=queue, exact=True).click()
    figure = admin.get_by_role("figure", name=f"{TEAMS[0]}, {TEAMS[1]}")
    expect(figure).to_be_visible()


def test_8_a_waiting_job_is_explained_and_unblocked(stack: Stack, admin: Page):
    stack.kubectl("delete", "pod", "asks", "--now", "--ignore-not-found")
    stack.kubectl(
        "apply", "-f", "-",
        stdin=manifests.pod("stuck", queue=TEAMS[0], gpus=3, priority_class="build"),
    )  # fmt: skip
    admin.goto("/")
    admin.get_by_role("link", name="Workloads", exact=True).click()
    admin.get_by_role("row", name="stuck").click()
    main = admin.locator("main")
    expect(main).to_contain_text("quota is 2 GPUs")
    expect(main).to_contain_text("What ends it:")
    main.get_by_role("link", name=TEAMS[0]).first.click()
    edit = admin.get_by_role("link", name="Edit").or_(admin.get_by_role("button", name="Edit"))
    edit.first.click()
    form = admin.get_by_role("form", name=f"Edit {TEAMS[0]}")
    form.get_by_label("GPU quota", exact=True).fill("8")
    form.get_by_role("button", name="Save").click()
    confirm = admin.get_by_role("button", name="Save and evict")
    expect(form.get_by_role("status").filter(has_text="No changes").or_(confirm)).to_be_visible()
    if confirm.count():
        confirm.click()
    wait_until(lambda: _is_running(stack, "stuck"), what="the job to run", stack=stack)


def test_9_the_numbers_are_exported(stack: Stack, admin: Page):
    admin.goto("/")
    admin.get_by_role("link", name="Usage").click()
    with admin.expect_download() as download:
        admin.get_by_role("link", name="CSV file").click()
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text())))
    assert len(rows) > 1
    assert "gpuHours" in rows[0]
