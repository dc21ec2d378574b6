"""What the API server itself noted about the requests of our processes: the only proof of which rights they used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

PREFIX = "system:serviceaccount:kai-scheduler:"
FORBIDDEN = 403
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    # A line at the end of each request; of a watch also the one at its start, for it ends too late.
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:kai-scheduler"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """One answered request of a service account of ours."""

    account: str
    verb: str
    group: str
    resource: str
    code: int


@dataclass(frozen=True, slots=True)
class AuditLog:
    """The API server's audit log in a folder."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "audit.log"

    def flags(self) -> list[str]:
        """Write the policy and return the flags that make the server follow it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(POLICY))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.file}"]

    def requests(self) -> Iterator[Request]:
        """Return what is in the log so far."""
        for line in self.file.read_text().splitlines():
            event = json.loads(line)
            about = event.get("objectRef") or {}
            sub = about.get("subresource")
            resource = about.get("resource", event["requestURI"])
            yield Request(
                account=event["user"]["username"].removeprefix(PREFIX),
                verb=event["verb"],
                group=about.get("apiGroup", ""),
                resource=f"{resource}/{sub}" if sub else resource,
                code=event["responseStatus"]["code"],
            )
