"""Long runs: `python -m tests.binder.machine --sequences 10000 --seed 7 --jobs 2`.

Exit code 1 if a rule did not hold; the seed and the steps are printed. `--shrink` looks for the shortest such steps.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed

STEPS = 30
#: Sequences per seed. Short runs of many seeds reach more different beginnings than one long run.
CHUNK = 50


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    seeds = range(options.seed, options.seed + -(-options.sequences // CHUNK))
    started, done, failed = time.monotonic(), 0, 0
    with ProcessPoolExecutor(options.jobs, initializer=_set_up) as pool:
        runs = [pool.submit(run, seed, CHUNK, shrink=options.shrink) for seed in seeds]
        for number, finished in enumerate(as_completed(runs), start=1):
            text = finished.result()
            done += CHUNK
            if text:
                failed += 1
                print(text, flush=True)
            if number % 10 == 0:
                print(f"{done} sequences, {failed} seeds failed", flush=True)
    print(
        f"{done} sequences of {STEPS} steps in {time.monotonic() - started:.0f} s, {failed} failed"
    )
    return 1 if failed else 0


def run(seed: int, sequences: int, *, shrink: bool = False) -> str:
    """Run so many sequences from a seed; return what failed, or nothing."""
    import hypothesis
    from hypothesis.stateful import run_state_machine_as_test

    from tests.binder.machine.machine import Devices

    shrinking = (hypothesis.Phase.shrink,) if shrink else ()
    settings = hypothesis.settings(
        max_examples=sequences,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(hypothesis.Phase.generate, *shrinking),
        report_multiple_bugs=False,
        derandomize=False,
    )
    try:
        run_state_machine_as_test(hypothesis.seed(seed)(Devices), settings=settings)
    except Exception as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        return f"seed {seed}:\n{traceback.format_exc(limit=-4)}\n{notes}"
    return ""


def _set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.test")
    import django

    django.setup()
    logging.disable(logging.CRITICAL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.binder.machine")
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--shrink", action="store_true", help="look for the shortest failing steps")
    return parser


if __name__ == "__main__":
    sys.exit(main())
