"""An admin finds the GPUs that are allocated but idle."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser import manifests
from tests.browser.people import read
from tests.integration.stack import Stack, wait_until

QUEUE = "browser-idle"


def test_a_gpu_that_is_held_but_not_used_is_found(stack: Stack, page: Page):
    stack.kubectl("apply", "-f", "-", stdin=manifests.queue(QUEUE, quota=4, limit=4))
    for name, utilisation in (("idle-lazy", "0"), ("idle-busy", "80")):
        manifest = manifests.pod(name, queue=QUEUE, utilisation=utilisation)
        stack.kubectl("apply", "-f", "-", stdin=manifest)
    page.goto("/nodes?idle=true")

    def idle_pods() -> list[str]:
        gpus = read(page, "/gpus?idle=true")["items"]
        return [holder["pod"] for gpu in gpus for holder in gpu["holders"]]

    wait_until(
        lambda: "default/idle-lazy" in idle_pods(),
        what="the utilisation of the pods to be read",
        timeout_s=100,
        every_s=2.0,
        stack=stack,
    )
    assert "default/idle-busy" not in idle_pods()
    grid = page.locator("main")
    expect(grid.get_by_role("link", name=manifests.NODE)).to_be_visible()
    cell = grid.locator("[data-idle]").first
    cell.click()
    popover = page.get_by_role("dialog")
    expect(popover).to_contain_text("Utilisation 0%")
    expect(popover).to_contain_text("idle for")
    page.goto(f"/nodes/{manifests.NODE}")
    busy = page.locator("main").get_by_role("row").filter(has_text="idle-busy").first
    expect(busy).to_contain_text("80%")
    expect(busy).not_to_contain_text("idle for")
    stack.kubectl("delete", "pod", "idle-lazy", "idle-busy", "--now", "-n", "default")
    stack.kubectl("delete", "queue", QUEUE)
