"""Answers of the REST API for tests of the terminal, and a client that returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from click.testing import CliRunner, Result

from kaiweb.terminal.program import terminal
from kaiweb.terminal.rest import RefusedError

AMOUNTS = {"gpu": 0, "cpuMilli": 0, "memoryBytes": 0}


def queue(name: str, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "parent": parent,
        "quota": {"gpu": 4},
        "limit": {"gpu": "unlimited"},
        "weight": {"gpu": 1},
        "share": {**AMOUNTS, "gpu": 6},
        "allocated": {**AMOUNTS, "gpu": 6, "cpuMilli": 1500, "memoryBytes": 3 << 29},
        "requested": {**AMOUNTS, "gpu": 8},
        "runningWorkloads": 2,
        "pendingWorkloads": 1,
        "orphan": False,
        "problems": [],
        "etag": '"1-abc"',
        **fields,
    }


def workload(name: str, owner: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "namespace": "team",
        "name": name,
        "kind": "Job",
        "owner": owner,
        "queue": "vision",
        "state": "pending",
        "createdAt": "2026-11-30T08:00:00.000Z",
        "priorityClass": "train",
        "priority": 50,
        "gpu": 8,
        "ready": 0,
        "pods": 2,
        "position": 3,
        "reason": "DeviceShortage",
        "explain": {
            "reason": "DeviceShortage",
            "text": "2 nodes lack free GPUs",
            "since": None,
            "evidence": [
                {"name": "GPUs for one pod", "asked": "8", "available": "2 at most", "where": "n1"}
            ],
            "others": [],
            "order": {
                "position": 3,
                "of": 7,
                "aheadInQueue": 1,
                "ahead": [
                    {"namespace": "team", "name": "pg-a", "owner": "train-1", "queue": "vision", "gpu": 2, "position": 2}
                ],
            },
            "stages": [
                {"stage": "queue", "state": "ok", "text": ""},
                {"stage": "nodes", "state": "blocked", "text": "2 nodes lack free GPUs"},
            ],
        },
        **fields,
    }  # fmt: skip


def simulation(verdict: str, **answer: Any) -> dict[str, Any]:
    return {
        "id": 7,
        "state": "done",
        "error": None,
        "answer": {
            "verdict": verdict,
            "errors": [],
            "warnings": [],
            "evictions": [],
            "starts": [],
            "shares": [],
            "blocked": [],
            "totals": {"evictedOnlyByEdits": 0},
            **answer,
        },
    }


@dataclass(slots=True)
class FakeRest:
    """Returns prepared answers by path and keeps what was sent."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    sent: list[tuple[str, str, Any, dict[str, str]]] = field(default_factory=list)

    def get(self, path: str, **parameters: str) -> Any:
        return self._answer("GET", path, None, parameters)

    def items(self, path: str, **parameters: str) -> list[Any]:
        rows: list[Any] = self._answer("GET", path, None, parameters)
        return rows

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self._answer("POST", path, body, headers)

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        return self._answer("PATCH", path, body, headers)

    def _answer(self, method: str, path: str, body: Any, rest: dict[str, str]) -> Any:
        self.sent.append((method, path, body, rest))
        if path not in self.answers:
            raise RefusedError(404, f"{path} does not exist (404)", "")
        return self.answers[path]


def run(rest: FakeRest, *words: str, stdin: str = "") -> Result:
    """Run a command of the terminal with this client."""
    command, *arguments = words
    return CliRunner().invoke(
        terminal.commands[command], arguments, obj=lambda: rest, input=stdin, prog_name=command
    )
