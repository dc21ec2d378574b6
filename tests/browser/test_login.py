"""Nobody sees the dashboard without logging in."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import log_in
from tests.integration.stack import Stack


def test_a_wrong_password_is_refused_and_the_right_one_leads_to_the_page_asked_for(
    browser: Browser, stack: Stack
):
    context = browser.new_context(base_url=stack.url)
    page = context.new_page()
    log_in(page, stack, password="not the password")
    expect(page.get_by_role("alert")).to_be_visible()
    page.goto("/nodes")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(stack.password)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/nodes$"))
    expect(page.get_by_role("heading", name="Nodes", level=1)).to_be_visible()
    context.close()


def test_the_log_in_page_follows_the_theme_of_the_system(browser: Browser, stack: Stack):
    context = browser.new_context(base_url=stack.url, color_scheme="light")
    page = context.new_page()
    page.goto("/login")
    root = page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", "light")
    page.emulate_media(color_scheme="dark")
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
    context.close()


def test_signing_out_ends_the_session(browser: Browser, stack: Stack):
    # Its own session: signing out would end that of the other tests.
    context = browser.new_context(base_url=stack.url)
    page = context.new_page()
    log_in(page, stack)
    page.get_by_role("button", name="You").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    page.goto("/queues")
    expect(page.get_by_label("Password")).to_be_visible()
    context.close()


def test_the_page_says_who_is_signed_in(context: BrowserContext, page: Page):
    page.goto("/")
    page.get_by_role("button", name="You").click()
    expect(page.get_by_text(re.compile("Signed in as .*admin", re.IGNORECASE))).to_be_visible()
