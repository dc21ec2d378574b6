"""The child process that runs jq: reads one request per line and writes one answer per line, until its input ends.

It is started as a file and imports no other module of ours. libjq blocks the interpreter while it evaluates, and aborts
the process when memory runs out; a controller could not tolerate either.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from functools import lru_cache
from itertools import islice
from typing import Any

import jq

MEMORY_BYTES = 512 << 20
MAX_VALUES = 1000
MAX_ANSWER_BYTES = 4 << 20


@lru_cache(maxsize=512)
def compiled(expression: str) -> Any:
    return jq.compile(expression)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Compile the expression and, if the request has a document, evaluate it."""
    try:
        program = compiled(request["expression"])
        if "document" not in request:
            return {"values": []}
        values = list(islice(iter(program.input_value(request["document"])), MAX_VALUES + 1))
    except ValueError as error:
        return {"error": str(error)}
    if len(values) > MAX_VALUES:
        return {"error": f"yields more than {MAX_VALUES} values"}
    return {"values": values}


def encoded(reply: dict[str, Any]) -> bytes:
    """Return the line to write; values too large for a controller to hold become an error."""
    line = json.dumps(reply).encode()
    if len(line) > MAX_ANSWER_BYTES:
        return json.dumps({"error": f"yields more than {MAX_ANSWER_BYTES} bytes"}).encode()
    return line


def main(cpu_s: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        # Without the parent, nothing else would end an endless expression.
        spent = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (spent + cpu_s, resource.RLIM_INFINITY))
        sys.stdout.buffer.write(encoded(answer(json.loads(line))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
