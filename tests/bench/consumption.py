"""What each process of an installation used: requests to the API server, and processor time."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.counting import sitecustomize
from tests.integration.stack import Stack
from tests.processes import processes

#: The process that measures, which creates the pods as users would.
CLIENT = "client"
#: Written every few seconds by processes that do nothing.
BACKGROUND = ("leases", "configmaps", "nodes", "tokenreviews")
QUIET_S = 2.0
QUIET_REQUESTS = 10
MAX_SETTLE_S = 180.0


@dataclass(frozen=True, slots=True)
class Consumption:
    """What was used up to a moment, or between two moments.

    Attributes
    ----------
    requests : how many there were of each (process, kind of request)
    cpu_s : by process
    """

    requests: Counter[tuple[str, str]]
    cpu_s: Mapping[str, float]

    def since(self, earlier: Consumption) -> Consumption:
        """Return what was used after an earlier moment."""
        return Consumption(
            self.requests - earlier.requests,
            {name: used - earlier.cpu_s.get(name, 0.0) for name, used in self.cpu_s.items()},
        )

    def lines(self, pods: int) -> Iterator[str]:
        """Yield a table of what a pod costs in each process, the dearest first."""
        total_ms = 1000 * sum(self.cpu_s.values()) / pods
        yield (
            f"  a pod costs {sum(self.requests.values()) / pods:.1f} requests and "
            f"{total_ms:.1f} ms of processor time:"
        )
        used_s = {name: 0.0 for name, _ in self.requests} | dict(self.cpu_s)
        for name, used in sorted(used_s.items(), key=lambda item: -item[1]):
            kinds = Counter({kind: n for (who, kind), n in self.requests.items() if who == name})
            if used / pods < 5e-5 and not kinds:
                continue
            common = [f"{kind} {n / pods:.2f}" for kind, n in kinds.most_common() if n >= pods / 50]
            yield (
                f"    {name:<20}{1000 * used / pods:>7.2f} ms{sum(kinds.values()) / pods:>7.2f} requests"
                f"  {', '.join(common)}"
            )


@dataclass(slots=True)
class Meter:
    """Reads what the processes of one installation have used.

    Parameters
    ----------
    folder : gets the record of the requests
    stack : the installation; set once it runs
    """

    folder: Path
    stack: Stack | None = None
    _has_own: bool = field(default=False)

    def environment(self) -> dict[str, str]:
        """Return the variables with which the processes record their requests."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._has_own:
            sitecustomize.record_requests(self.folder)
            self._has_own = True
        return {
            sitecustomize.FOLDER: str(self.folder),
            "PYTHONPATH": str(Path(sitecustomize.__file__).parent),
        }

    def read(self) -> Consumption:
        """Return what was used so far."""
        assert self.stack is not None
        names = {pid: name for name, pid in self.stack.pids().items()} | {os.getpid(): CLIENT}
        requests: Counter[tuple[str, str]] = Counter()
        for file in self.folder.iterdir():
            name = names.get(int(file.name))
            if name is not None:
                kinds = Counter(file.read_text().splitlines())
                requests.update({(name, kind): number for kind, number in kinds.items()})
        cpu_s = {}
        for process in processes():
            name = names.get(process.pid)
            if name is None and process.parent == os.getpid():
                # The servers of a real cluster are children of the process that measures.
                name = process.name.rstrip("-v0123456789.")
            if name not in (None, CLIENT, "python", "kaiweb"):
                cpu_s[name] = process.cpu_s
        return Consumption(requests, cpu_s)

    def wait_until_settled(self) -> float:
        """Wait until hardly anything is written any more; return when that began, by the monotonic clock."""
        deadline = time.monotonic() + MAX_SETTLE_S
        seen, since = self._foreground(), time.monotonic()
        while True:
            time.sleep(QUIET_S)
            now = self._foreground()
            if now - seen <= QUIET_REQUESTS or time.monotonic() > deadline:
                return since
            seen, since = now, time.monotonic()

    def _foreground(self) -> int:
        return sum(
            number
            for (_, kind), number in self.read().requests.items()
            if kind.split(" ")[1].partition("/")[0] not in BACKGROUND
        )
