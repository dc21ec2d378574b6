"""Colleagues of the administrator: accounts with a role, each logged in to a browser profile of their own."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.integration.stack import Stack

PASSWORD = "correct horse battery"
#: Calls REST from the page, with its cookies, as the dashboard does.
CALL = """async ([method, path, body]) => {
  const token = document.cookie.match(/csrftoken=([^;]+)/)?.[1] ?? "";
  const answer = await fetch("/api/v1" + path, {
    method,
    headers: { "X-CSRFToken": token, ...(body === null ? {} : { "Content-Type": "application/json" }) },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return [answer.status, text === "" ? null : JSON.parse(text)];
}"""


def call(page: Page, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Call REST with the rights of whoever is logged in to the page; return the status and the body."""
    status, answer = page.evaluate(CALL, [method, path, body])
    return status, answer


def read(page: Page, path: str) -> Any:
    """Return the body of a GET that must succeed."""
    status, answer = call(page, "GET", path)
    assert status == 200, answer
    return answer


def create_account(
    page: Page, name: str, role: str | None = None, subtree: str | None = None
) -> None:
    """Create an account, with a role if one is named, by a page of an administrator."""
    user = {"username": name, "displayName": name.capitalize(), "password": PASSWORD}
    status, answer = call(page, "POST", "/users", user)
    assert status == 201, answer
    if role is not None:
        binding = {"username": name, "role": role, "subtree": subtree}
        status, answer = call(page, "POST", "/role-bindings", binding)
        assert status == 201, answer


def open_profile(browser: Browser, stack: Stack, **options: Any) -> BrowserContext:
    """Open a browser profile on an installation, as large as a small laptop and without animations.

    Parameters
    ----------
    options : further ones of `Browser.new_context`
    """
    return browser.new_context(
        base_url=stack.url,
        viewport={"width": 1280, "height": 900},
        reduced_motion="reduce",
        **options,
    )


@contextmanager
def logged_in(browser: Browser, stack: Stack, name: str) -> Iterator[Page]:
    """Yield a page of a colleague, who has just logged in."""
    context = open_profile(browser, stack)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"/$"))
    yield page
    context.close()


def apply_as(stack: Stack, manager: str, manifest: str) -> None:
    """Apply a manifest on the server's side in the name of another field manager, as a GitOps controller does."""
    stack.kubectl("apply", "--server-side", "--field-manager", manager, "-f", "-", stdin=manifest)


def run_django(stack: Stack, code: str) -> str:
    """Run Python code in `kaiweb shell` of the installation and return what it prints."""
    result: subprocess.CompletedProcess[str] = stack.kaiweb("shell", "-c", code)
    assert result.returncode == 0, result.stderr
    return result.stdout


def spec_of(stack: Stack, queue: str) -> dict[str, Any]:
    """Return the spec of a queue in the cluster."""
    spec: dict[str, Any] = json.loads(stack.kubectl("get", "queue", queue, "-o", "json"))["spec"]
    return spec
