"""Photograph every page at several widths and themes: `python -m tests.browser.screenshots URL PASSWORD [FOLDER]`.

The installation at URL should have work in it, for example `kaiweb up` with its demo. Each picture is named
`PAGE-WIDTH-THEME.png`. Look at them after every change of the dashboard.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import ADMIN, ARGUMENTS, find_chromium

HEIGHT = 900
#: How long a page may take to draw its rows.
SETTLE_MS = 2_500
WIDTHS = (390, 1280, 1920)
THEMES = ("light", "dark", "forced")
PAGES = {
    "overview": "/",
    "queues": "/queues",
    "workloads": "/workloads",
    "nodes": "/nodes",
    "scheduler": "/scheduler",
    "simulate": "/simulate",
    "changes": "/changes",
    "audit": "/audit",
    "tokens": "/settings",
    "users": "/settings/users",
}
#: Pages of one object: the list, and the text of the first row that leads to it.
FIRST_ROWS = {"queue": "/queues", "workload": "/workloads"}


def main() -> None:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        for theme in options.themes:
            for width in options.widths:
                page = _log_in(chromium, options.url, options.password, theme, width)
                for name in options.pages:
                    _open(page, name)
                    path = options.folder / f"{name}-{width}-{theme}.png"
                    page.screenshot(path=path)
                    print(path)
                page.context.close()
        chromium.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("password")
    parser.add_argument("folder", type=Path, nargs="?", default=Path(".cache/screenshots"))
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--themes", choices=THEMES, nargs="+", default=THEMES)
    parser.add_argument("--pages", nargs="+", default=[*PAGES, *FIRST_ROWS])
    return parser.parse_args()


def _log_in(chromium: Browser, url: str, password: str, theme: str, width: int) -> Page:
    context = chromium.new_context(
        base_url=url,
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if theme == "dark" else "light",
        forced_colors="active" if theme == "forced" else "none",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("User name").fill(ADMIN)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
    return page


def _open(page: Page, name: str) -> None:
    page.goto(PAGES.get(name) or FIRST_ROWS[name])
    page.wait_for_timeout(SETTLE_MS)
    if name in FIRST_ROWS:
        page.get_by_role("row").nth(1).click()
        page.wait_for_timeout(SETTLE_MS)


if __name__ == "__main__":
    main()
