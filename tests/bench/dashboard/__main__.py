"""`python -m tests.bench.dashboard`: measure the budgets of the dashboard and print each beside what it should be.

Takes about ten minutes on a free machine; `--minutes 20` keeps the sockets open as long as the release asks for.
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
from tests.browser.conftest import ADMIN, ARGUMENTS, find_chromium
from tests.integration.stack import Stack

EDITED = "department-0000"
#: How long one process computes to learn how busy the machine is.
SLOWDOWN_S = 0.2
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
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
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
    say(f"first load {pages.transferred_kb(page):.0f} kB of scripts and styles (budget 320)")
    page.close()


def _measure_first_content(context: BrowserContext) -> None:
    for path in pages.FIRST_CONTENT:
        page = context.new_page()
        say(f"{path} speaks after {pages.seconds_to_speak(page, path):.1f} s (budget 2)")
        page.close()


def _measure_scrolling(context: BrowserContext, stack: Stack) -> None:
    page = context.new_page()
    for per_second in (0, MANY_PER_SECOND):
        still = pages.baseline(page)
        say(f"an empty page scrolls at {still.fps:.0f} frames/s")
        for path in pages.SCROLLED:
            pages.seconds_to_speak(page, path)
            with _changes(stack, per_second):
                page.wait_for_timeout(1_000)
                scrolling = pages.scroll(page)
            say(
                f"{path} scrolls at {scrolling.fps:.0f} frames/s under {per_second} changes/s, "
                f"longest frame {scrolling.longest_ms:.0f} ms (budget 50 frames/s)"
            )
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
        pages.seconds_to_speak(page, "/queues")
        times = pages.edits_ms(page, EDITED)
        p95 = times[int(len(times) * 0.95) - 1]
        say(
            f"edit to pixel under {SOME_PER_SECOND} changes/s: p50 {statistics.median(times):.0f} ms, "
            f"p95 {p95:.0f} ms (budget 1000)"
        )
        for path in ("/", *pages.SCROLLED):
            pages.seconds_to_speak(page, path)
            page.wait_for_timeout(2_000)
            say(f"{path} keeps its main thread busy {pages.busy_percent(page):.0f} % (budget 15)")
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
    half = samples[len(samples) // 2]
    say(
        f"{count} sockets for {minutes:g} min: {before:.0f} MB before, {samples[0]:.0f} at first, "
        f"{half:.0f} half-way, {samples[-1]:.0f} at the end, {(samples[-1] - before) / count:.2f} MB each "
        f"(budget 1, flat); {reconnects} connected again"
    )


if __name__ == "__main__":
    main()
