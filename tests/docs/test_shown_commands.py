"""Every command that a page shows has a rule: program, verb, options, files, kinds, paths and fields exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.shown.code import CALLS, SHOWN, is_data, is_shell
from tests.docs.shown.pages import PAGES, ROOT, Code, blocks
from tests.docs.shown.programs import RULES
from tests.docs.shown.rest_commands import check_body, check_call
from tests.docs.shown.shell import Command, commands

#: Page with `sh` blocks -> the test that runs them as they stand.
RUN_BY = {
    "README.md": "tests/integration/test_shown_commands.py",
    "docs/start.md": "tests/integration/test_shown_commands.py",
    "docs/guides/ci.md": "tests/integration/test_shown_commands.py",
    "docs/guides/replay-a-cycle.md": "tests/integration/test_shown_commands.py",
    "docs/guides/submit-a-workload.md": "tests/integration/test_shown_commands.py",
    "docs/guides/terminal.md": "tests/integration/test_shown_commands.py",
    "docs/guides/migrate-from-kai.md": "tests/deploy/test_migration.py",
    "docs/operations/backup.md": "tests/integration/test_backup_commands.py",
}


def test_the_pages_are_read():
    programs = {command.program for command in SHOWN}

    assert {"kubectl", "helm", "curl", "docker", "pip", "kaiweb", "make"} <= programs
    assert "docs/guides/wait-and-follow.md" in {c.page for c in SHOWN if c.program == "curl"}
    assert len(CALLS) > 20


def test_each_block_without_a_language_is_a_command_or_known_data():
    unknown = [
        code.place
        for page in PAGES
        for code in blocks(page)
        if not is_shell(code) and not is_data(code)
    ]

    assert unknown == []


@pytest.mark.parametrize("command", SHOWN, ids=lambda command: f"{command.page}:{command.line}")
def test_a_shown_command_is_right(command: Command):
    assert command.program in RULES, f"no rule covers {command}"

    RULES[command.program](command)


@pytest.mark.parametrize(("place", "method", "target"), CALLS)
def test_a_shown_call_is_in_the_openapi_document(place: str, method: str, target: str):
    check_call(method, target)


@pytest.mark.parametrize(
    "text",
    [
        "kubectl anotate queue a kaiweb.dev/hold=x",
        "kubectl get queues --al-namespaces",
        "kubectl get queus",
        "kubectl create rol a",
        "kubectl annotate queue a kaiweb.dev/user-fairnes=true",
        "kubectl apply -f docs/examples/absent.yaml",
        "kubectl -n a exec deploy/b -- kaiweb restor -",
        "curl -X POST $URL/api/v1/queues/a/absent",
        "curl -X PATCH $URL/api/v1/simulations",
        "curl $URL/api/v1/queues?absent=1",
        """curl $URL/api/v1/simulations -d '{"cycle": 3}'""",
        """curl $URL/api/v1/simulations -d '{"queues": [{"name": "a", "edits": {}}]}'""",
        "docker build -t r/kaiweb:0.1.0 --target absent .",
        "docker build -t r/kaiweb:0.0.9 .",
        "python -m binder.absent",
        "npm run absent",
        "make absent",
        "pip install kaiweb",
    ],
)
def test_a_wrong_command_is_refused(text: str):
    (command,) = commands(Code(page="page", line=1, language="sh", text=text))

    with pytest.raises(AssertionError):
        RULES[command.program](command)


def test_a_wrong_field_deep_in_a_body_is_refused():
    with pytest.raises(AssertionError, match=r"has no field \['\.queues\[\]\.edit\.quotas'\]"):
        check_body(
            "POST", "/api/v1/simulations", {"queues": [{"name": "a", "edit": {"quotas": {}}}]}
        )


def test_each_script_is_run_by_a_test():
    pages = {page.relative_to(ROOT).as_posix() for page in PAGES if "```sh\n" in page.read_text()}

    assert pages == set(RUN_BY)
    for page, test in RUN_BY.items():
        assert Path(page).name in (ROOT / test).read_text(), f"{test} does not run {page}"
