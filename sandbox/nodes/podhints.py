"""What a manifest can tell the simulated kubelets, as pod annotations.

| annotation                     | example | meaning                                                        |
|--------------------------------|---------|----------------------------------------------------------------|
| `sandbox.kaiweb/duration`      | `90s`   | how long the containers run before the pod ends                |
| `sandbox.kaiweb/exit-code`     | `1`     | with what code they end then (0 when absent)                   |
| `sandbox.kaiweb/start-delay`   | `5s`    | time between binding and Running, as if pulling an image (0)   |
| `sandbox.kaiweb/shutdown`      | `10s`   | how long they need to stop when deleted (1s, at most the grace)|

Without a duration a pod runs for ever, except that a container whose command is `sleep <seconds>`
ends as the real one would, unless its restart policy is Always.
"""

from __future__ import annotations

from queues import durations

DURATION = "sandbox.kaiweb/duration"
EXIT_CODE = "sandbox.kaiweb/exit-code"
START_DELAY = "sandbox.kaiweb/start-delay"
SHUTDOWN = "sandbox.kaiweb/shutdown"


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as `90s`, `1h30m` or `250ms`.

    Raises
    ------
    ValueError : the text is none; the message shows it and an example
    """
    return durations.parse_duration(text) / durations.SECOND


def format_duration(seconds: float) -> str:
    """Return the shortest text that `parse_duration` reads back, to the millisecond."""
    milliseconds = round(seconds * 1000)
    if milliseconds % 1000:
        return f"{milliseconds}ms"
    return f"{milliseconds // 1000}s"
