"""Every number on the pages is the one that REST answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import manifests
from tests.browser.people import read
from tests.integration.stack import Stack, wait_until

QUEUE = "browser-numbers"


@pytest.fixture(scope="module")
def busy(stack: Stack) -> Iterator[Stack]:
    """A queue with whole and shared GPUs in use, and work that waits."""
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=2.5, limit=64))
    for manifest in (
        manifests.pod("numbers-two", queue=QUEUE, gpus=2),
        manifests.pod("numbers-part", queue=QUEUE, fraction="0.5"),
        manifests.pod("numbers-waits", queue=QUEUE, gpus=8, priority_class="build"),
    ):
        stack.kubectl("apply", "-f", "-", stdin=manifest)
    for name in ("numbers-two", "numbers-part"):
        wait_until(
            lambda name=name: stack.objects("pod", name)[0]["status"].get("phase") == "Running",
            what=f"pod {name} to run",
            stack=stack,
        )
    yield stack
    stack.kubectl(
        "delete", "pod", "numbers-two", "numbers-part", "numbers-waits", "--now", "-n", "default"
    )
    stack.kubectl("delete", "queue", QUEUE)


def shown(value: float) -> str:
    """Return a number as the dashboard writes it: at most two decimals, commas between thousands."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _bound(amounts: dict[str, Any], resource: str = "gpu") -> str:
    value = amounts.get(resource)
    if value is None:
        return "unset"
    return value if isinstance(value, str) else shown(value)


def test_the_overview_shows_the_numbers_of_the_cluster(busy: Stack, page: Page):
    page.goto("/")
    cluster = read(page, "/cluster")
    gpus = cluster["gpus"]
    main = page.locator("main")
    expect(main).to_contain_text(f"{shown(gpus['allocated'])} of {shown(gpus['total'])} allocated")
    expect(main).to_contain_text(f"{shown(gpus['free'])} free")
    for model in cluster["models"]:
        expect(main).to_contain_text(f"{shown(model['allocated'])} of {shown(model['total'])}")
    workloads, nodes = cluster["workloads"], cluster["nodes"]
    expect(main).to_contain_text(f"{workloads['running']} running")
    expect(page.get_by_role("link", name=f"{workloads['pending']} pending")).to_be_visible()
    expect(main).to_contain_text(f"{nodes['ready']} of {nodes['total']} ready")
    listed = read(page, "/workloads?state=pending&limit=1000")["items"]
    assert len(listed) == workloads["pending"]
    assert sum(reason_count["workloads"] for reason_count in cluster["pendingByReason"]) == len(
        listed
    )


def test_every_row_of_the_queue_tree_shows_the_numbers_of_its_queue(busy: Stack, page: Page):
    page.goto("/queues")
    row = page.get_by_role("row", name=QUEUE)
    expect(row.get_by_role("gridcell").nth(5)).to_have_text("2.5")
    queues = read(page, "/queues?limit=1000")["items"]
    expect(page.locator("main")).to_contain_text(f"{len(queues)} queues")
    for queue in queues:
        cells = page.get_by_role("row", name=queue["displayName"] or queue["name"], exact=False)
        weight, share = queue["weight"].get("gpu"), queue["share"]
        expected = [
            _bound(queue["quota"]),
            _bound(queue["limit"]),
            "–" if weight is None else str(weight),
            "–" if queue["priority"] is None else str(queue["priority"]),
            "–" if share is None else shown(share["gpu"]),
            shown(queue["allocated"]["gpu"]),
        ]
        texts = cells.first.get_by_role("gridcell").all_inner_texts()
        assert [text.strip() for text in texts[:6]] == expected, queue["name"]
        assert texts[8].strip() == str(queue["pendingWorkloads"]), queue["name"]


def test_the_list_of_workloads_shows_the_numbers_of_rest(busy: Stack, page: Page):
    page.goto(f"/workloads?queue={QUEUE}")
    listed = read(page, f"/workloads?queue={QUEUE}&limit=1000")["items"]
    every = read(page, "/workloads?limit=1000")["items"]
    expect(page.locator("main")).to_contain_text(f"{len(listed)} of {len(every)} workload")
    for workload in listed:
        row = page.get_by_role("row", name=workload["owner"] or workload["name"])
        expect(row).to_contain_text(re.compile(workload["state"], re.IGNORECASE))
        ready = f"{workload['ready']} / {workload['minMember']}"
        expect(row.get_by_role("gridcell").filter(has_text=ready).first).to_be_visible()
        gpus = row.get_by_role("gridcell").filter(
            has_text=re.compile(rf"^{shown(workload['gpu'])}$")
        )
        expect(gpus.first).to_be_visible()


def test_the_nodes_page_shows_each_device_as_rest_reports_it(busy: Stack, page: Page):
    page.goto("/nodes")
    nodes = read(page, "/nodes?limit=1000")["items"]
    total, allocated = (sum(node[key] for node in nodes) for key in ("gpuTotal", "gpuAllocated"))
    expect(page.locator("main")).to_contain_text(
        f"{len(nodes)} nodes, {shown(allocated)} of {shown(total)} GPUs allocated"
    )
    page.goto(f"/nodes?q={manifests.NODE}")
    node = read(page, f"/nodes/{manifests.NODE}")
    free = node["gpuTotal"] - node["gpuAllocated"]
    expect(page.get_by_role("row", name=manifests.NODE)).to_contain_text(f"{shown(free)} free")
    for device in node["devices"]:
        cell = page.locator(f'[data-cell="{manifests.NODE}/{device["index"]}"]')
        expect(cell).to_have_attribute("data-state", device["state"])
        holders = " ".join(holder["queue"] for holder in device["holders"])
        expect(cell).to_have_attribute("data-queue", holders)


def test_a_session_and_a_waiting_workload_show_the_numbers_of_rest(busy: Stack, page: Page):
    page.goto("/scheduler")
    row = page.get_by_role("grid").get_by_role("row").nth(1)
    number = row.get_by_role("rowheader").or_(row.get_by_role("gridcell")).first.inner_text()
    session = read(page, f"/sessions/{number.replace(',', '').lstrip('#')}")
    texts = page.get_by_role("row", name=number).first.get_by_role("gridcell").all_inner_texts()
    counts = [session[key] for key in ("bound", "nominated", "evicted", "unschedulable")]
    assert [text.strip() for text in texts[-4:]] == [str(count) for count in counts]

    page.goto(f"/workloads?queue={QUEUE}&q=numbers-waits")
    page.get_by_role("row", name="numbers-waits").click()
    expect(page.get_by_role("heading", name="numbers-waits", level=1)).to_be_visible()
    _, namespace, name = page.url.split("/workloads", 1)[1].split("/")
    explain = read(page, f"/workloads/{namespace}/{name}/explain")
    main = page.locator("main")
    expect(main).to_contain_text(explain["reason"])
    for evidence in explain["evidence"]:
        line = main.get_by_role("row", name=evidence["name"])
        expect(line).to_contain_text(evidence["asked"])
        expect(line).to_contain_text(evidence["available"])


def test_usage_shows_the_sums_of_rest(busy: Stack, page: Page):
    """The sums grow every minute, so the page and REST are compared until they meet."""

    def sums() -> list[str]:
        with page.expect_response(re.compile(r"/api/v1/usage\?.*by=queue")) as caught:
            page.goto("/usage?range=24h")
        total = caught.value.json()["total"]
        keys = ("gpuHours", "inQuotaHours", "overQuotaHours")
        return [f"{total[key]:,.1f}".removesuffix(".0") for key in keys]

    expected = sums()
    tiles = page.locator("main")
    for name, value in zip(("Held", "In quota", "Over quota"), expected, strict=True):
        expect(tiles).to_contain_text(f"{name}{value}")
