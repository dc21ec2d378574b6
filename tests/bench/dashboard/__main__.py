"""`python -m tests.bench.dashboard`: measure the budgets of the dashboard and print each beside its goal.

Takes about ten minutes on a free machine; `--minutes 20` keeps the sockets open as long as the release asks for. `--parts`
measures some of it, and `--home FOLDER` keeps the filled installation for the next run. Processor times hold on a busy machine
too; all others are only as good as the load that stands beside them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

from kube.resources import PODGROUPS
from tests.bench.dashboard import pages, sockets
from tests.bench.dashboard.installation import changing, large_installation
from tests.bench.dashboard.world import NAMESPACE, Size
from tests.bench.submit import gateway_to
from tests.browser.conftest import ADMIN, CHROMIUM_ARGUMENTS, find_chromium
from tests.integration.stack import Stack

EDITED = "department-0000"
#: How long one process computes to learn how busy the machine is.
SLOWDOWN_S = 0.2
#: How much the memory may grow in the second half of the time and still count as flat.
FLAT_PERCENT = 3.0
PARTS = ("pages", "sockets")
SOME_PER_SECOND, MANY_PER_SECOND = 20, 5_000


def main() -> None:
    """Run all measurements one after the other."""
    options = _options()
    size = Size(queues=options.queues, workloads=options.workloads, nodes=options.nodes)
    if find_chromium() is None:
        print("dashboard: no Chromium, nothing measured")
        return
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-bench-") as folder,
        large_installation(options.home or Path(folder), size) as stack,
    ):
        say(f"{size.queues} queues, {size.workloads} workloads, {size.nodes} nodes")
        if "pages" in options.parts:
            _measure_pages(stack)
        if "sockets" in options.parts:
            _measure_sockets(stack, options.sockets, options.minutes)


def say(text: str) -> None:
    """Print a line with the load of the machine, and how much slower than alone a process is on it now."""
    load, processors = os.getloadavg()[0], os.cpu_count()
    print(
        f"dashboard: {text} (load {load:.1f} on {processors}, {_slowdown():.1f} x slower than alone)",
        flush=True,
    )


def judge(
    what: str, figure: float, unit: str, *, goal: float, is_least: bool = False, also: str = ""
) -> None:
    """Print a figure beside its goal, and whether it is met.

    Parameters
    ----------
    is_least : whether the goal is the least that is wanted, not the most
    also : further figures that have no goal
    """
    is_met = figure >= goal if is_least else figure <= goal
    bound = "at least" if is_least else "at most"
    digits = 1 if abs(figure) < 10 else 0
    further = f", {also}" if also else ""
    verdict = "met" if is_met else "MISSED"
    say(f"{what} {figure:.{digits}f} {unit}{further} (goal: {bound} {goal:g}): {verdict}")


def _slowdown() -> float:
    """Return how long a calculation takes for each second that it computes."""
    began, computing = time.monotonic(), time.process_time()
    while time.process_time() - computing < SLOWDOWN_S:
        sum(range(1_000))
    return (time.monotonic() - began) / SLOWDOWN_S


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=2_000)
    parser.add_argument("--workloads", type=int, default=50_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--sockets", type=int, default=500)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--home", type=Path, help="keep the installation here for further runs")
    minutes = float(os.environ.get("KAIWEB_BENCH_MINUTES", "2"))
    parser.add_argument("--minutes", type=float, default=minutes)
    return parser.parse_args()


def _measure_pages(stack: Stack) -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS
        )
        context = chromium.new_context(
            base_url=stack.url, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
        )
        _log_in(context, stack)
        _measure_first_content(context)
        _measure_scrolling(context, stack)
        _measure_edits(context, stack)
        chromium.close()


def _log_in(context: BrowserContext, stack: Stack) -> None:
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("User name").fill(ADMIN)
    page.get_by_label("Password").fill(stack.password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
    judge("first load of scripts and styles:", pages.transferred_kb(page), "kB", goal=320)
    page.close()


def _measure_first_content(context: BrowserContext) -> None:
    for path in pages.FIRST_CONTENT:
        page = context.new_page()
        judge(f"{path} speaks after", pages.seconds_to_first_content(page, path), "s", goal=2)
        page.close()


def _measure_scrolling(context: BrowserContext, stack: Stack) -> None:
    page = context.new_page()
    for per_second in (0, MANY_PER_SECOND):
        still = pages.baseline(page)
        say(f"an empty page scrolls at {still.fps:.0f} frames/s, {still.frame_ms:.1f} ms each")
        for path in pages.SCROLLED:
            pages.seconds_to_first_content(page, path)
            with _changes(stack, per_second):
                page.wait_for_timeout(1_000)
                scrolling = pages.scroll(page)
            under = f"under {per_second} changes/s"
            judge(
                f"{path} scrolls {under} at",
                scrolling.fps,
                "frames/s",
                goal=50,
                is_least=True,
                also=f"longest {scrolling.longest_ms:.0f} ms",
            )
            judge(f"{path} {under} computes for a frame", scrolling.frame_ms, "ms", goal=20)
    page.close()


@contextmanager
def _changes(stack: Stack, per_second: int) -> Iterator[None]:
    if per_second:
        with changing(stack, per_second):
            yield
    else:
        yield


def _measure_edits(context: BrowserContext, stack: Stack) -> None:
    page = context.new_page()
    with _patches(stack):
        pages.seconds_to_first_content(page, "/queues")
        times = pages.edits_ms(page, EDITED)
        p95 = times[int(len(times) * 0.95) - 1]
        judge(
            f"edit to pixel under {SOME_PER_SECOND} changes/s, p95:",
            p95,
            "ms",
            goal=1_000,
            also=f"p50 {statistics.median(times):.0f} ms",
        )
        for path in ("/", *pages.SCROLLED):
            pages.seconds_to_first_content(page, path)
            page.wait_for_timeout(2_000)
            judge(f"{path} keeps its main thread busy", pages.busy_percent(page), "%", goal=15)
    page.close()


@contextmanager
def _patches(stack: Stack) -> Iterator[None]:
    """Change workloads in the cluster itself, so that the changes pass through API server and mirror."""
    gateway = gateway_to(stack)
    is_over = threading.Event()

    def run() -> None:
        number = 0
        while not is_over.wait(1 / SOME_PER_SECOND):
            number += 1
            labels = {"user": f"user-{number % 300}"}
            name = f"work-{number * 7 % 1000:05}"
            gateway.patch(PODGROUPS, name, {"metadata": {"labels": labels}}, namespace=NAMESPACE)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _measure_sockets(stack: Stack, count: int, minutes: float) -> None:
    keys = sockets.sessions(stack, count)
    before = sockets.memory_mb(stack.pids()["web"])
    with _patches(stack):
        samples, reconnects = sockets.measure(stack, keys, count, minutes)
    first, half, last = samples[0], samples[len(samples) // 2], samples[-1]
    opened = f"{count} sockets for {minutes:g} min"
    judge(f"{opened}: each takes", (last - before) / count, "MB", goal=1)
    judge(
        f"{opened}: memory grows in the second half by",
        100 * (last / half - 1),
        "%",
        goal=FLAT_PERCENT,
        also=f"{before:.0f} MB before, {first:.0f} at first, {half:.0f} half-way, {last:.0f} at the end; "
        f"{reconnects} connected again",
    )


if __name__ == "__main__":
    main()
