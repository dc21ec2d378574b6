"""Photograph every page at several widths and themes: `python -m tests.browser.screenshots [--url URL --password PW]`.

Without a URL an installation with the demo stream is started for it. Each picture is named `PAGE-WIDTH-THEME.png`; the
pictures of one width and theme are also put on one sheet, to look at together. Look at them after every change of the
dashboard.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import ADMIN, ARGUMENTS, find_chromium
from tests.integration.stack import running_stack

HEIGHT = 900
#: How long a page may take to draw its rows.
SETTLE_MS = 2_000
TIMEOUT_MS = 120_000
#: How long the demo stream fills a new installation before it is photographed.
FILL_S = 90
WIDTHS = (390, 1280, 1920)
THEMES = ("light", "dark", "forced")
#: Pictures of each width side by side on a sheet, and in all.
SHEET_COLUMNS, SHEET_PICTURES = {390: 6, 1280: 2, 1920: 2}, {390: 12, 1280: 6, 1920: 6}
SHEET = """<style>
  body {{ display: grid; grid-template-columns: repeat({columns}, 1fr); gap: 8px; margin: 8px; background: #888 }}
  figure {{ margin: 0 }} img {{ width: 100% }} figcaption {{ font: 14px sans-serif }}
</style>{figures}"""


def _at(path: str) -> Callable[[Page], None]:
    def visit(page: Page) -> None:
        page.goto(path)
        page.wait_for_timeout(SETTLE_MS)

    return visit


def _first_row(path: str, tab: str = "") -> Callable[[Page], None]:
    """Visit the page of the first row of a list, and one of its tabs."""

    def visit(page: Page) -> None:
        _at(path)(page)
        page.get_by_role("grid").or_(page.get_by_role("treegrid")).get_by_role("row").nth(1).click()
        page.wait_for_timeout(SETTLE_MS)
        if tab:
            page.get_by_role("link", name=tab, exact=True).click()
            page.wait_for_timeout(SETTLE_MS)

    return visit


def _pressing(path: str, button: str) -> Callable[[Page], None]:
    def visit(page: Page) -> None:
        _at(path)(page)
        page.get_by_role("button", name=button).first.click()
        page.wait_for_timeout(SETTLE_MS)

    return visit


def _review(page: Page) -> None:
    """Draft two edits, look at what they would do, and discard the draft again."""
    for queue, quota in (("demo-vision", "4"), ("demo-robotics", "14")):
        _at(f"/queues?queue={queue}")(page)
        form = page.get_by_role("form")
        form.get_by_label("GPU quota", exact=True).fill(quota)
        form.get_by_role("button", name="Add to draft").click()
        form.get_by_text("This queue has edits in the draft.").wait_for()
    form.get_by_role("link", name="Review").click()
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_role("region", name="Preview").wait_for()


def _search(page: Page) -> None:
    _pressing("/", "Search everything")(page)
    page.get_by_role("textbox", name="Queue, workload, pod").fill("h100")
    page.wait_for_timeout(SETTLE_MS)


PAGES: Mapping[str, Callable[[Page], None]] = {
    "overview": _at("/"),
    "queues": _at("/queues"),
    "queue-form": _first_row("/queues"),
    "queue-new": _pressing("/queues", "New queue"),
    "queue": _at("/queues/demo-vision"),
    "queue-share": _at("/queues/demo-vision/share"),
    "queue-workloads": _at("/queues/demo-vision/workloads"),
    "queue-history": _at("/queues/demo-vision/history?range=1h"),
    "queue-access": _at("/queues/demo-vision/access"),
    "queue-yaml": _at("/queues/demo-vision/yaml"),
    "workloads": _at("/workloads"),
    "workload": _first_row("/workloads"),
    "workload-timeline": _first_row("/workloads", "Timeline"),
    "workload-pods": _first_row("/workloads", "Pods"),
    "workload-placement": _first_row("/workloads", "Placement"),
    "workload-yaml": _first_row("/workloads", "YAML"),
    "nodes": _at("/nodes"),
    "node": _at("/nodes/a100-1"),
    "topology": _at("/topology"),
    "scheduler": _at("/scheduler"),
    "session": _first_row("/scheduler"),
    "evictions": _at("/scheduler/evictions"),
    "order": _at("/scheduler/order"),
    "binds": _at("/scheduler/binds"),
    "simulate": _at("/simulate"),
    "review": _review,
    "changes": _at("/changes"),
    "usage": _at("/usage?range=24h"),
    "audit": _at("/audit"),
    "tokens": _at("/settings"),
    "users": _at("/settings/users"),
    "shards": _at("/settings/shards"),
    "search": _search,
    "not-found": _at("/no-such-page"),
    "denied": _at("/denied"),
    "offline": _at("/offline"),
}


def main() -> None:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    with _installation(options.url, options.password) as (url, password), sync_playwright() as each:
        chromium = each.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        for theme in options.themes:
            for width in options.widths:
                page = _log_in(chromium, url, password, theme, width)
                pictures = [_photograph(page, name, options.folder) for name in options.pages]
                page.context.close()
                _make_sheets(chromium, pictures, width, options.folder / f"sheet-{width}-{theme}")
        chromium.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="")
    parser.add_argument("--password", default="")
    parser.add_argument("--folder", type=Path, default=Path(".cache/screenshots"))
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--themes", choices=THEMES, nargs="+", default=THEMES)
    parser.add_argument("--pages", choices=PAGES, nargs="+", default=list(PAGES))
    return parser.parse_args()


@contextmanager
def _installation(url: str, password: str) -> Iterator[tuple[str, str]]:
    """Yield address and password of the installation to photograph; start one if none is named."""
    if url:
        yield url, password
        return
    with (
        tempfile.TemporaryDirectory(prefix="kaiweb-pictures-") as folder,
        running_stack(Path(folder), {"DEMO": "1"}) as stack,
    ):
        time.sleep(FILL_S)
        yield stack.url, stack.password


def _log_in(chromium: Browser, url: str, password: str, theme: str, width: int) -> Page:
    context = chromium.new_context(
        base_url=url,
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if theme == "dark" else "light",
        forced_colors="active" if theme == "forced" else "none",
        reduced_motion="reduce",
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("User name").fill(ADMIN)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
    return page


def _photograph(page: Page, name: str, folder: Path) -> Path:
    theme = _theme_of(page)
    width = page.viewport_size["width"] if page.viewport_size else 0
    path = folder / f"{name}-{width}-{theme}.png"
    PAGES[name](page)
    page.screenshot(path=path)
    if name == "review":
        page.get_by_role("button", name="Delete draft").click()
        page.wait_for_url("**/changes")
    print(path)
    return path


def _theme_of(page: Page) -> str:
    if page.evaluate("matchMedia('(forced-colors: active)').matches"):
        return "forced"
    return (
        "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    )


def _make_sheets(chromium: Browser, pictures: list[Path], width: int, path: Path) -> None:
    """Put pictures side by side, each with its name, on as many sheets as are needed."""
    page = chromium.new_page(viewport={"width": 1600, "height": 900})
    most = SHEET_PICTURES.get(width, 6)
    for number, start in enumerate(range(0, len(pictures), most), start=1):
        figures = "".join(
            f'<figure><img src="{picture.name}"><figcaption>{picture.stem}</figcaption></figure>'
            for picture in pictures[start : start + most]
        )
        sheet = path.with_name(f"{path.name}-{number}.html")
        sheet.write_text(SHEET.format(columns=SHEET_COLUMNS.get(width, 2), figures=figures))
        page.goto(sheet.resolve().as_uri())
        page.screenshot(path=sheet.with_suffix(".png"), full_page=True)
        sheet.unlink()
    page.close()


if __name__ == "__main__":
    main()
