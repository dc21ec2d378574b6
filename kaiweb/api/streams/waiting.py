"""Hold requests that wait for something, without a thread for each: ask Django again while it answers 202.

`GET …/wait` answers at once: 200 for reached, 202 for not yet. Here a 202 is kept from the client and the request
is sent to Django again after a pause, until its `timeout` is over. So every look checks the caller's rights anew.
"""

from __future__ import annotations

import asyncio
import re
import time
from urllib.parse import parse_qs

from kaiweb.api.streams.inner import Answer, App, Receive, Scope, Send, call, until_disconnect

WAIT_PATH = re.compile(r"/api/v1/(workloads/[^/]+/[^/]+|queues/[^/]+)/wait")
NOT_YET = 202
#: The longest wait that a request may ask for; views refuse longer ones.
MAX_TIMEOUT_S = 300
PAUSE_S = 0.5
#: The pause grows with the number of waiters, so that together they look at most this often in a second.
LOOKS_PER_S = 25
#: A further request is answered at once.
MAX_WAITERS = 500


class WaitingRequests:
    """Wraps an ASGI application: a request `GET …/wait` is held while the answer is 202."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._waiters = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_wait = (
            scope["type"] == "http"
            and scope["method"] == "GET"
            and WAIT_PATH.fullmatch(scope["path"]) is not None
        )
        if not is_wait or self._waiters >= MAX_WAITERS:
            await self._app(scope, receive, send)
            return
        self._waiters += 1
        disconnect = asyncio.create_task(until_disconnect(receive), name="wait-disconnect")
        try:
            answer = await self._last_answer(scope, disconnect)
            if not disconnect.done():
                await answer.pass_on(send)
        finally:
            self._waiters -= 1
            disconnect.cancel()

    async def _last_answer(self, scope: Scope, disconnect: asyncio.Task[None]) -> Answer:
        deadline = time.monotonic() + _timeout_s(scope)
        while True:
            answer = await call(self._app, scope)
            remaining_s = deadline - time.monotonic()
            if answer.status != NOT_YET or remaining_s <= 0:
                return answer
            pause = max(PAUSE_S, self._waiters / LOOKS_PER_S)
            finished_tasks, _waiting = await asyncio.wait(
                {disconnect}, timeout=min(pause, remaining_s)
            )
            if finished_tasks:
                return answer


def _timeout_s(scope: Scope) -> float:
    """Return the parameter `timeout`; 0 if it is absent or cannot be read, which the view refuses."""
    values = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("timeout", [])
    is_number = len(values) == 1 and values[0].isascii() and values[0].isdecimal()
    if not is_number or len(values[0]) > 4:
        return 0.0
    return float(min(MAX_TIMEOUT_S, int(values[0])))
