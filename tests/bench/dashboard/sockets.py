"""Many open dashboards: the memory of the web process with hundreds of live connections."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.integration.stack import Stack

PER_USER = 20
EVERY_S = 10.0
#: Browsers come one after the other, not all in one moment.
BETWEEN_S = 0.02
MAKE_SESSIONS = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
for number in range({users}):
    user, _ = User.objects.get_or_create(username=f"bench-{{number}}")
    session = SessionStore()
    session[SESSION_KEY], session[BACKEND_SESSION_KEY] = str(user.pk), "{backend}"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    print("session", session.session_key)
"""
BACKEND = "django.contrib.auth.backends.ModelBackend"


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"process {pid} has no VmRSS")


def sessions(stack: Stack, sockets: int) -> list[str]:
    """Create enough users for so many sockets; return the keys of their sessions."""
    users = -(-sockets // PER_USER)
    printed = stack.kaiweb("shell", "-c", MAKE_SESSIONS.format(users=users, backend=BACKEND))
    assert printed.returncode == 0, printed.stderr
    return [line.split()[1] for line in printed.stdout.splitlines() if line.startswith("session ")]


def measure(stack: Stack, keys: list[str], sockets: int, minutes: float) -> tuple[list[float], int]:
    """Return the memory of the web process every ten seconds while the sockets are open, and how many came again."""
    return asyncio.run(_measure(stack, keys, sockets, minutes))


async def _measure(
    stack: Stack, keys: list[str], sockets: int, minutes: float
) -> tuple[list[float], int]:
    lost: list[str] = []
    readers = []
    for number in range(sockets):
        key = keys[number // PER_USER]
        readers.append(asyncio.create_task(_keep_open(stack.url, key, lost)))
        await asyncio.sleep(BETWEEN_S)
    pid = stack.pids()["web"]
    ends = time.monotonic() + minutes * 60
    samples = []
    while time.monotonic() < ends:
        await asyncio.sleep(EVERY_S)
        samples.append(memory_mb(pid))
    broken = [task for task in readers if task.done()]
    for task in readers:
        task.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    assert not broken, f"{len(broken)} of {sockets} sockets ended: {broken[0]}"
    return samples, len(lost)


async def _keep_open(url: str, key: str, lost: list[str]) -> None:
    """Connect again when a busy machine has answered a ping too late, as the page does."""
    while True:
        try:
            await _dashboard(url, key)
        except (ConnectionClosed, TimeoutError) as error:
            lost.append(str(error))
            await asyncio.sleep(1.0)


async def _dashboard(url: str, key: str) -> None:
    """Follow the overview as a browser does: acknowledge, and answer heartbeats."""
    async with connect(
        f"{url.replace('http', 'ws')}/api/v1/live",
        subprotocols=["kaiweb.live.v1"],
        additional_headers={"Cookie": f"sessionid={key}"},
        origin=url,
        max_size=None,
        open_timeout=120,
        ping_interval=None,
    ) as socket:
        await _say(socket, t="hello", client="bench", locale="en")
        await _say(socket, t="sub", id="1", topic="cluster", params={})
        async for text in socket:
            frame = json.loads(text)
            if frame["t"] in ("snap", "delta"):
                await _say(socket, t="ack", id="1", seq=frame["seq"])
            elif frame["t"] == "hb":
                await _say(socket, t="hb", seqs={})


async def _say(socket: ClientConnection, **frame: object) -> None:
    await socket.send(json.dumps(frame))
