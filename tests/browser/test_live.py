"""What happens in the cluster appears in the browser, without a reload, also after the connection was lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from kube.keys import REASON_CODE
from tests.browser import manifests
from tests.integration.stack import Stack, wait_until

QUEUE = "browser-live"
#: A value in the page that a reload would clear.
MARK = "document.documentElement.dataset.mark"


@pytest.fixture
def live(stack: Stack) -> Iterator[Stack]:
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4))
    yield stack
    stack.kubectl("delete", "pod", "--all", "-n", manifests.NAMESPACE, "--wait=true", "--now")
    stack.kubectl("delete", "queue", QUEUE)


def _cells(page: Page) -> Locator:
    """The GPU cells our queue holds."""
    return page.locator(f'[data-cell^="{manifests.NODE}/"][data-queue="{QUEUE}"]')


def _apply(stack: Stack, name: str, gpus: int = 1, priority_class: str | None = None) -> None:
    manifest = manifests.pod(name, queue=QUEUE, gpus=gpus, priority_class=priority_class)
    stack.kubectl("apply", "-f", "-", stdin=manifest)


def test_a_pod_takes_its_gpu_cell_and_gives_it_back_without_a_reload(live: Stack, page: Page):
    page.goto(f"/nodes?q={manifests.NODE}")
    expect(page.get_by_role("gridcell", name="GPU 0: free")).to_be_visible()
    page.evaluate(f"{MARK} = 'same page'")
    _apply(live, "cell", gpus=2)
    expect(_cells(page)).to_have_count(2)
    expect(_cells(page).first).to_have_attribute("data-state", "whole")
    _cells(page).first.click()
    expect(page.get_by_role("dialog")).to_contain_text("cell")
    page.keyboard.press("Escape")
    live.kubectl("delete", "pod", "cell", "-n", manifests.NAMESPACE, "--now")
    expect(_cells(page)).to_have_count(0)
    assert page.evaluate(MARK) == "same page"


def test_the_reason_of_a_pending_workload_is_the_same_in_list_page_rest_and_events(
    live: Stack, page: Page
):
    _apply(live, "greedy", gpus=6, priority_class="build")
    page.goto(f"/workloads?queue={QUEUE}")
    row = page.get_by_role("row", name="greedy")
    expect(row).to_contain_text("NonPreemptibleOverQuota")
    expect(row).to_contain_text("Pending")
    row.click()
    expect(page.get_by_role("heading", name="greedy", level=1)).to_be_visible()
    body = page.locator("main")
    expect(body).to_contain_text("NonPreemptibleOverQuota")
    expect(body).to_contain_text(f"Workload requested 6 GPUs, but {QUEUE} quota is 4 GPUs")
    answer = page.request.get("/api/v1/workloads", params={"queue": QUEUE, "state": "pending"})
    [workload] = answer.json()["items"]
    assert workload["reason"] == "NonPreemptibleOverQuota"
    expect(body).to_contain_text(workload["reasonText"])
    events = live.objects(
        "events", "-n", manifests.NAMESPACE, "--field-selector", "reason=Unschedulable"
    )
    assert {
        event["metadata"]["annotations"][REASON_CODE]
        for event in events
        if "greedy" in event["involvedObject"]["name"]
    } == {"NonPreemptibleOverQuota"}
    page.get_by_role("link", name="Pods").click()
    expect(page.get_by_role("rowheader", name="greedy")).to_be_visible()


def test_a_waiting_workload_shows_its_position_in_the_order(live: Stack, page: Page):
    _apply(live, "holder", gpus=8, priority_class="build-preemptible")
    wait_until(
        lambda: live.objects("pod", "holder", "-n", manifests.NAMESPACE)[0]["spec"].get("nodeName"),
        what="the bound pod",
        stack=live,
    )
    # A higher priority puts this pod first; the creation times may be equal, as they are in whole seconds.
    _apply(live, "first", gpus=2, priority_class="build-preemptible")
    _apply(live, "second", gpus=3)
    page.goto(f"/workloads?queue={QUEUE}&q=second")
    row = page.get_by_role("row", name="second")
    expect(row).to_contain_text("DeviceShortage")
    row.click()
    expect(page.locator("main")).to_contain_text("1 ahead of it, 1 of them in the same queue.")
    expect(page.locator("main")).to_contain_text("2 of 2")
    page.get_by_role("list", name="Nearest ahead").get_by_role("link", name="first").click()
    expect(page.get_by_role("heading", name="first", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text("It is next.")
    live.kubectl("delete", "pod", "holder", "-n", manifests.NAMESPACE, "--now")
    expect(page.locator("main")).to_contain_text("It is running.")


def test_a_lone_pod_is_listed_with_the_reason(live: Stack, page: Page):
    live.kubectl("apply", "-f", "-", stdin=manifests.skipped_pod("loner", queue=QUEUE))
    page.goto(f"/workloads?queue={QUEUE}")
    row = page.get_by_role("row", name="loner")
    expect(row).to_contain_text("Unmanaged")
    row.click()
    expect(page.locator("main")).to_contain_text("No pod group manages it.")
    expect(page.locator("main")).to_contain_text("kai.scheduler/skip-podgrouper")


def test_filters_are_in_the_address_and_survive_a_reload(live: Stack, page: Page):
    _apply(live, "one")
    _apply(live, "two")
    page.goto(f"/workloads?queue={QUEUE}")
    expect(page.get_by_role("row", name="two")).to_be_visible()
    page.get_by_label("Search workloads").fill("one")
    expect(page.get_by_role("row", name="two")).to_have_count(0)
    page.reload()
    expect(page.get_by_label("Search workloads")).to_have_value("one")
    expect(page.get_by_role("row", name="one")).to_be_visible()
    expect(page.get_by_role("row", name="two")).to_have_count(0)


def test_pausing_freezes_the_page_and_resuming_catches_up(live: Stack, page: Page):
    page.goto(f"/nodes?q={manifests.NODE}")
    expect(page.get_by_role("gridcell", name="GPU 0: free")).to_be_visible()
    page.get_by_role("button", name="Live").click()
    page.get_by_role("button", name="Pause updates").click()
    page.keyboard.press("Escape")
    _apply(live, "hidden")
    expect(page.get_by_role("button", name="Paused · ")).not_to_have_text("Paused · 0")
    wait_until(
        lambda: live.objects("pod", "hidden", "-n", manifests.NAMESPACE)[0]["spec"].get("nodeName"),
        what="the bound pod",
        stack=live,
    )
    expect(_cells(page)).to_have_count(0)
    page.get_by_role("button", name="Paused").click()
    page.get_by_role("button", name="Resume updates").click()
    expect(_cells(page)).to_have_count(1)


def test_a_page_that_cannot_be_loaded_loads_itself_when_the_server_is_back(live: Stack, page: Page):
    page.goto("/queues")
    expect(page.get_by_role("row", name="default-queue")).to_be_visible()
    live.kill("web")
    page.get_by_role("link", name="Nodes").click()
    expect(page.get_by_role("heading", name="This page could not be loaded")).to_be_visible()
    expect(page.get_by_role("heading", name="Nodes")).to_be_visible(timeout=60_000)
