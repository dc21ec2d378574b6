"""Evaluate jq expressions of Karta definitions with the jq library in a child process.

Definitions come from the cluster, so their expressions are untrusted programs. Words that access the host or may loop
forever are refused when the definition is checked (`words`). An expression that still takes too much time or memory
ends only the child process, which has no environment. The child is started for the first expression.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from queues.grouping.errors import GroupingError
from queues.grouping.karta.words import refused_words

CHILD = Path(__file__).with_name("jq_child.py")
MAX_EXPRESSION_LENGTH = 1000
START_S = 30.0
DEADLINE_S = 5.0
CPU_S = 10
"""CPU limit for a child whose parent was killed while it waited."""
CACHE_S = 600.0


class JqError(GroupingError):
    """The expression is refused, is invalid, or fails on this document."""


class JqOverrunError(JqError):
    """The expression exceeded the limit of time or memory; it may work on other documents."""


class _ChildDiedError(Exception):
    """The child process ended in the middle of a request."""


@dataclass(slots=True)
class Evaluator:
    """A child process that is started when needed and killed when it does not answer in time.

    An expression that exceeded a limit is refused for a while, because each try would delay all other pods.
    """

    deadline_s: float = DEADLINE_S
    cpu_s: int = CPU_S
    clock: Callable[[], float] = time.monotonic
    _child: subprocess.Popen[bytes] | None = None
    #: Expression -> (when it overran its time, the error).
    _overran: dict[str, tuple[float, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: dict[str, Any]) -> list[Any]:
        """Return the values of a request.

        Raises
        ------
        JqError : jq refuses the expression or fails on the document
        JqOverrunError : too slow, too much memory
        """
        expression = request["expression"]
        with self._lock:
            self._refuse_overran(expression)
            child = self._running()
            try:
                answer = _exchange(child, json.dumps(request).encode() + b"\n", self.deadline_s)
            except TimeoutError:
                self._note(expression, f"took longer than {self.deadline_s:g} s")
            except (_ChildDiedError, OSError):
                self._note(expression, "needs too much memory or time")
            self._refuse_overran(expression)
        if "error" in answer:
            raise JqError(f"jq expression {expression!r}: {answer['error'].strip()}")
        values: list[Any] = answer["values"]
        return values

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _refuse_overran(self, expression: str) -> None:
        overran_at, why = self._overran.get(expression, (0.0, ""))
        if why and self.clock() - overran_at < CACHE_S:
            raise JqOverrunError(f"jq expression {expression!r} {why}")

    def _note(self, expression: str, why: str) -> None:
        self._overran[expression] = (self.clock(), why)
        self._stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is None:
            return self._child
        self._stop()
        self._child = _start(self.cpu_s)
        try:
            _exchange(self._child, b'{"expression": "."}\n', START_S)
        except (TimeoutError, _ChildDiedError, OSError) as error:
            self._stop()
            raise JqOverrunError(
                f"the process for jq expressions did not start: {error!r}"
            ) from error
        return self._child

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            # Unsent input is irrelevant once the child is dead.
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _start(cpu_s: int) -> subprocess.Popen[bytes]:
    # No environment, no user site. A session of its own, so that Ctrl-C of a terminal does not reach it. It ends
    # when this process ends, because its input ends then.
    return subprocess.Popen(
        [sys.executable, "-I", str(CHILD), str(cpu_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )


def _exchange(child: subprocess.Popen[bytes], line: bytes, deadline_s: float) -> dict[str, Any]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(line)
    child.stdin.flush()
    end = time.monotonic() + deadline_s
    descriptor, poll, received = child.stdout.fileno(), select.poll(), bytearray()
    poll.register(descriptor, select.POLLIN)
    while not received.endswith(b"\n"):
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise TimeoutError
        part = os.read(descriptor, 1 << 16)
        if not part:
            raise _ChildDiedError
        received += part
    answer: dict[str, Any] = json.loads(received)
    return answer


_EVALUATOR = Evaluator()
atexit.register(_EVALUATOR.close)


def check(expression: str) -> None:
    """Raise JqError for an expression that is invalid or may not be used; results are cached."""
    refusal = _refusal(expression)
    if refusal:
        raise JqError(refusal)


def evaluate(expression: str, document: Any) -> list[Any]:
    """Return every value that the expression yields for the document."""
    check(expression)
    return _EVALUATOR.ask({"expression": expression, "document": document})


def first_value(expression: str, document: Any) -> Any:
    """Return the first value that is not null, or None."""
    return next((value for value in evaluate(expression, document) if value is not None), None)


@lru_cache(maxsize=1024)
def _refusal(expression: str) -> str:
    if len(expression) > MAX_EXPRESSION_LENGTH:
        return f"jq expression is longer than {MAX_EXPRESSION_LENGTH} characters: {expression[:40]!r}..."
    words = refused_words(expression)
    if words:
        return f"unsupported jq expression {expression!r}: {', '.join(words)} may not be used"
    try:
        _EVALUATOR.ask({"expression": expression})
    except JqOverrunError:
        raise
    except JqError as error:
        return str(error)
    return ""
