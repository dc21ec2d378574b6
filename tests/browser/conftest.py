"""A running installation and a real Chromium that is logged in to it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.people import open_profile
from tests.integration.stack import Stack, running_stack

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
# As root in a container, Chromium cannot start its own sandbox. The other arguments keep it off the network.
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ADMIN = "admin"
# Generous, because a busy machine is slow; a passing test never waits that long.
WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything of this folder: it needs Chromium and starts a whole installation."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(240))


def find_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """An installation for the browser tests alone, without the stream of simulated workloads."""
    with running_stack(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The system's Chromium; the environment variable CHROMIUM names another."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium: install one, or name it in the environment variable CHROMIUM")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def login_state(browser: Browser, stack: Stack) -> Path:
    """Log in once through the page; return the file with the cookies, which the other tests load."""
    context = browser.new_context(base_url=stack.url)
    page = context.new_page()
    log_in(page, stack)
    expect(page).to_have_url(re.compile(r"/$"))
    state = stack.home / "browser-login.json"
    context.storage_state(path=state)
    context.close()
    return state


@pytest.fixture
def context(browser: Browser, stack: Stack, login_state: Path) -> Iterator[BrowserContext]:
    """A fresh logged-in browser profile; errors in the page's console fail the test."""
    context = open_profile(browser, stack, storage_state=login_state)
    context.set_default_timeout(WAIT_MS)
    errors: list[str] = []
    context.on("weberror", lambda error: errors.append(str(error.error)))
    yield context
    context.close()
    assert errors == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def log_in(page: Page, stack: Stack, password: str | None = None) -> None:
    """Fill in the log-in page as a person does."""
    page.goto("/")
    page.get_by_label("User name").fill(ADMIN)
    page.get_by_label("Password").fill(password or stack.password)
    page.get_by_role("button", name="Log in").click()
