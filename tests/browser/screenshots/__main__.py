"""Photograph every page at several widths and themes: `python -m tests.browser.screenshots [--url URL --password PW]`.

Without a URL an installation with the demo stream is started for it. Each picture is named `PAGE-WIDTH-THEME.png`; the
pictures of one width and theme are also put on sheets, to look at together. Look at them after every change of the
dashboard.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import ADMIN, CHROMIUM_ARGUMENTS, find_chromium
from tests.browser.screenshots.views import AFTERWARDS, VIEWS
from tests.integration.stack import running_stack

HEIGHT = 900
TIMEOUT_MS = 120_000
#: How long the demo stream fills a new installation before it is photographed.
FILL_S = 90
#: How long a page takes over another theme.
REPAINT_MS = 250
WIDTHS = (390, 1280, 1920)


class Theme(NamedTuple):
    """What the browser says of the user's wishes."""

    scheme: Literal["light", "dark"]
    forced: Literal["active", "none"]


THEMES: Mapping[str, Theme] = {
    "light": Theme("light", "none"),
    "dark": Theme("dark", "none"),
    "forced": Theme("light", "active"),
}
#: Pictures of each width side by side on a sheet, and in all.
SHEET_COLUMNS, SHEET_PICTURES = {390: 6, 1280: 2, 1920: 2}, {390: 12, 1280: 6, 1920: 6}
SHEET = """<style>
  body {{ display: grid; grid-template-columns: repeat({columns}, 1fr); gap: 8px; margin: 8px; background: #888 }}
  figure {{ margin: 0 }} img {{ width: 100% }} figcaption {{ font: 14px sans-serif }}
</style>{figures}"""


def main() -> None:
    """Take all pictures, then make the sheets."""
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    with _installation(options.url, options.password) as (url, password), sync_playwright() as each:
        chromium = each.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_ARGUMENTS)
        for width in options.widths:
            page = _log_in(chromium, url, password, width)
            for name in options.pages:
                _photograph(page, name, options.themes, options.folder)
            page.context.close()
            for theme in options.themes:
                pictures = [_picture(options.folder, name, width, theme) for name in options.pages]
                _make_sheets(chromium, pictures, width, options.folder / f"sheet-{width}-{theme}")
        chromium.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="")
    parser.add_argument("--password", default="")
    parser.add_argument("--folder", type=Path, default=Path(".cache/screenshots"))
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--themes", choices=THEMES, nargs="+", default=list(THEMES))
    parser.add_argument("--pages", choices=VIEWS, nargs="+", default=list(VIEWS))
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


def _log_in(chromium: Browser, url: str, password: str, width: int) -> Page:
    context = chromium.new_context(
        base_url=url, viewport={"width": width, "height": HEIGHT}, reduced_motion="reduce"
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("User name").fill(ADMIN)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
    return page


def _photograph(page: Page, name: str, themes: Sequence[str], folder: Path) -> None:
    """Go to a view once, and take a picture of it in each theme."""
    # Forced colors last: what Chromium has drawn with them once keeps some of them.
    page.emulate_media(color_scheme="light", forced_colors="none")
    VIEWS[name](page)
    width = page.viewport_size["width"] if page.viewport_size else 0
    for theme in themes:
        scheme, forced = THEMES[theme]
        page.emulate_media(color_scheme=scheme, forced_colors=forced)
        page.wait_for_timeout(REPAINT_MS)
        path = _picture(folder, name, width, theme)
        page.screenshot(path=path)
        print(path, flush=True)
    if name in AFTERWARDS:
        AFTERWARDS[name](page)


def _picture(folder: Path, name: str, width: int, theme: str) -> Path:
    return folder / f"{name}-{width}-{theme}.png"


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
