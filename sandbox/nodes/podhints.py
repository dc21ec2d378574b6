"""Pod annotations that control the simulated kubelets.

| annotation                     | example | meaning                                                        |
|--------------------------------|---------|----------------------------------------------------------------|
| `sandbox.kaiweb/duration`      | `90s`   | how long the containers run before the pod ends                |
| `sandbox.kaiweb/exit-code`     | `1`     | the exit code at that end (0)                                  |
| `sandbox.kaiweb/start-delay`   | `5s`    | time between binding and Running, as if pulling an image (0)   |
| `sandbox.kaiweb/shutdown`      | `10s`   | time to stop after a delete (1s, at most the grace period)     |
| `sandbox.kaiweb/utilisation`   | `0`     | how busy its GPUs are, in percent (by the uid of the pod)      |

Defaults are in parentheses. A pod without a duration runs until it is deleted. But if its command is
`sleep <seconds>` and its restart policy is not Always, it ends as the real one would.
"""

from __future__ import annotations

from kube.values import durations

DURATION = "sandbox.kaiweb/duration"
EXIT_CODE = "sandbox.kaiweb/exit-code"
START_DELAY = "sandbox.kaiweb/start-delay"
SHUTDOWN = "sandbox.kaiweb/shutdown"
UTILISATION = "sandbox.kaiweb/utilisation"


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as `90s`, `1h30m` or `250ms`.

    Raises
    ------
    ValueError : the text is not a duration; the message shows it and an example
    """
    return durations.parse_duration(text) / durations.SECOND


def format_duration(seconds: float) -> str:
    """Return the shortest text that `parse_duration` reads back, to the millisecond."""
    milliseconds = round(seconds * 1000)
    if milliseconds % 1000:
        return f"{milliseconds}ms"
    return f"{milliseconds // 1000}s"
