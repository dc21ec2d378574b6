"""Past use of queues as a fraction of the cluster, with older use counting less.

The time-based term of fair share needs to know how much of the cluster each queue has had lately. That is
a weighted ratio of allocation to capacity over the samples of a window. A half-life reduces the weight of
old samples in numerator and denominator alike, so that a queue that holds the whole cluster all the time
has a usage of exactly 1.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.arrays import Floats


def decayed_usage(
    times_s: Floats,
    allocated: Floats,
    capacity: Floats,
    *,
    since_s: float,
    now_s: float,
    half_life_s: float | None,
) -> Floats:
    """Return the weighted use in a window, per resource and queue.

    Parameters
    ----------
    times_s : shape (samples,); when each sample was taken
    allocated : shape (samples, resources, queues); what queues held
    capacity : shape (samples, resources); what the cluster had
    since_s, now_s : the window; samples outside (since_s, now_s] do not count
    half_life_s : age at which a sample counts half; None or <= 0 if all count alike

    Returns
    -------
    shape (resources, queues); 0 where the cluster had nothing of a resource

    Raises
    ------
    ValueError : a window that ends before it begins
    """
    if now_s < since_s:
        raise ValueError(f"window ends at {now_s}, before it begins at {since_s}")
    inside = (times_s > since_s) & (times_s <= now_s)
    weight = np.ones(int(inside.sum()))
    if half_life_s is not None and half_life_s > 0:
        weight = np.exp2((times_s[inside] - now_s) / half_life_s)
    usage: Floats = np.tensordot(weight, allocated[inside], axes=1)
    available: Floats = np.tensordot(weight, capacity[inside], axes=1)[:, None]
    return np.divide(usage, available, out=np.zeros_like(usage), where=available > 0)


def tumbling_start(anchor_s: float, window_s: float, now_s: float) -> float:
    """Return the last time before now at which a tumbling window began.

    Parameters
    ----------
    anchor_s : a time at which some window begins; if it is not before `now_s`, the window begins now
    window_s : length of the windows
    now_s : the time asked for

    Raises
    ------
    ValueError : a window that is not positive
    """
    if window_s <= 0:
        raise ValueError(f"a tumbling window must be longer than 0 s, got {window_s}")
    if anchor_s >= now_s:
        return now_s
    ended_windows = np.ceil((now_s - anchor_s) / window_s) - 1
    return float(anchor_s + ended_windows * window_s)
