"""The audit log is read correctly: a refused request is reported, whichever account sent it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.audit import FORBIDDEN, AuditLog, Request

LINES = [
    {
        "user": {"username": "system:serviceaccount:kai-scheduler:binder"},
        "verb": "create",
        "requestURI": "/api/v1/namespaces/ns/pods/p/binding",
        "objectRef": {"resource": "pods", "subresource": "binding", "name": "p"},
        "responseStatus": {"code": 201},
    },
    {
        "user": {"username": "system:serviceaccount:kai-scheduler:web"},
        "verb": "get",
        "requestURI": "/apis/scheduling.run.ai/v2/queues/lab",
        "objectRef": {"resource": "queues", "apiGroup": "scheduling.run.ai", "name": "lab"},
        "responseStatus": {"code": 403, "reason": "Forbidden"},
    },
    {
        "user": {"username": "system:serviceaccount:kai-scheduler:web"},
        "verb": "get",
        "requestURI": "/apis",
        "responseStatus": {"code": 200},
    },
]


def test_requests_are_read_with_account_subresource_and_code(tmp_path: Path):
    log = AuditLog(tmp_path)
    log.file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    assert list(log.requests()) == [
        Request("binder", "create", "", "pods/binding", 201),
        Request("web", "get", "scheduling.run.ai", "queues", FORBIDDEN),
        Request("web", "get", "", "/apis", 200),
    ]
