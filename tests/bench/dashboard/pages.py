"""What a user notices: how soon each page shows its content, how smoothly it scrolls, how soon an edit is seen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page, expect

#: Page -> a selector of its first content.
FIRST_CONTENT: Mapping[str, str] = {
    "/": "main h2",
    "/queues": '[role="treegrid"] [role="row"][aria-level]',
    "/workloads": '[role="grid"] [data-index="0"]',
    "/nodes": "[data-cell]",
    "/scheduler": "main h1",
    "/usage": "main h2",
    "/changes": "main h1",
    "/audit": "main h1",
}
SCROLLED = ("/workloads", "/queues", "/nodes")
SCROLL_S = 5.0
EDITS = 20
IDLE_S = 10.0
WAIT_MS = 120_000

SCROLL = """(seconds) => new Promise((done) => {
  const all = [...document.querySelectorAll("main *, main")];
  const box = all.filter((each) => each.scrollHeight > each.clientHeight + 50)
    .sort((a, b) => b.scrollHeight - a.scrollHeight)[0] ?? document.scrollingElement;
  const began = performance.now();
  let frames = 0, last = began, longest = 0, direction = 1;
  const step = (now) => {
    frames += 1; longest = Math.max(longest, now - last); last = now;
    if (box.scrollTop + box.clientHeight >= box.scrollHeight - 2) direction = -1;
    if (box.scrollTop <= 0) direction = 1;
    box.scrollTop += 60 * direction;
    if (now - began < seconds * 1000) requestAnimationFrame(step);
    else done([frames / ((now - began) / 1000), longest]);
  };
  requestAnimationFrame(step);
})"""
#: Resolves with the milliseconds from the request to the changed cell.
EDIT = """async ([queue, quota]) => {
  const row = [...document.querySelectorAll('[role="row"]')].find((each) => each.innerText.startsWith(queue));
  const cell = row.querySelector('[role="gridcell"]');
  const { etag } = await (await fetch("/api/v1/queues/" + queue)).json();
  const seen = new Promise((done) => {
    const look = () => cell.innerText.trim() === String(quota) ? done(performance.now()) : requestAnimationFrame(look);
    look();
  });
  const began = performance.now();
  const answer = await fetch("/api/v1/queues/" + queue, {
    method: "PATCH", body: JSON.stringify({ quota: { gpu: quota } }),
    headers: { "Content-Type": "application/json", "If-Match": etag,
      "X-CSRFToken": document.cookie.match(/csrftoken=([^;]+)/)[1] },
  });
  if (!answer.ok) throw new Error(await answer.text());
  return await seen - began;
}"""
TRANSFER = """() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
  .filter((each) => /\\.(js|css)(\\?|$)/.test(each.name))
  .reduce((sum, each) => sum + each.encodedBodySize, 0)"""


@dataclass(frozen=True, slots=True)
class Scrolling:
    """Frames per second, the longest time without a frame, and what a frame takes of a processor."""

    fps: float
    longest_ms: float
    #: Of the page's main thread, whatever else the machine does: 20 ms and less allow 50 frames a second.
    frame_ms: float


def seconds_to_first_content(page: Page, path: str) -> float:
    """Return how long a page takes from its address to its first content."""
    began = time.monotonic()
    page.goto(path, wait_until="commit")
    expect(page.locator(FIRST_CONTENT[path]).first).to_be_visible(timeout=WAIT_MS)
    return time.monotonic() - began


def transferred_kb(page: Page) -> float:
    """Return the size of the scripts and styles that the page has loaded, as they were sent."""
    return float(page.evaluate(TRANSFER)) / 1000


def scroll(page: Page) -> Scrolling:
    """Scroll the longest list of the page for some seconds."""
    session = _metrics_session(page)
    before = _task_seconds(session)
    fps, longest_ms = page.evaluate(SCROLL, SCROLL_S)
    computed_s = _task_seconds(session) - before
    session.detach()
    return Scrolling(fps, longest_ms, 1000 * computed_s / (fps * SCROLL_S))


def baseline(page: Page) -> Scrolling:
    """Scroll a page without anything, as a yardstick for this machine at this moment."""
    page.goto("about:blank")
    page.set_content("<main><div style='height:900px;overflow:auto'>" + "<p>line</p>" * 2_000)
    return scroll(page)


def edits_ms(page: Page, queue: str) -> list[float]:
    """Return how long each of some edits took from the request to the changed cell, sorted."""
    return sorted(float(page.evaluate(EDIT, [queue, 100 + number])) for number in range(EDITS))


def busy_percent(page: Page) -> float:
    """Return how much of a processor the page's main thread takes while nobody touches it."""
    session = _metrics_session(page)
    before = _task_seconds(session)
    page.wait_for_timeout(IDLE_S * 1000)
    after = _task_seconds(session)
    session.detach()
    return 100 * (after - before) / IDLE_S


def _metrics_session(page: Page) -> CDPSession:
    """Return a session whose metrics count processor time, which a busy machine does not lengthen."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def _task_seconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))
