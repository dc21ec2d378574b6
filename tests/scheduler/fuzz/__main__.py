"""Long runs: `python -m tests.scheduler.fuzz --clusters 500 --seed 7 --cycles 16 --oracle 500`.

Exit code 1 if a rule did not hold; the seed and the shrunk scenarios are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path

from tests.scheduler.fuzz.campaign import Campaign


def main(arguments: list[str] | None = None) -> int:
    """Run and print a summary."""
    options = _parser().parse_args(arguments)
    campaign = Campaign(options.seed, options.cycles)
    started = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        _run(campaign, options)
    print()
    print(_summary(campaign, time.monotonic() - started))
    for path in campaign.write(options.out):
        print(f"scenario: {path}")
    return 1 if campaign.counts else 0


def _run(campaign: Campaign, options: argparse.Namespace) -> None:
    """Run all clusters; Ctrl-C ends the run with a summary of what is done so far."""
    numbers = [options.only] if options.only is not None else range(options.clusters)
    for number in numbers:
        campaign.run_cluster(number)
        _progress(f"cluster {number + 1}", campaign)
    for number in range(options.oracle):
        campaign.run_tiny(number)
        _progress(f"tiny cluster {number + 1}", campaign)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.scheduler.fuzz")
    parser.add_argument("--clusters", type=int, default=100, help="random clusters")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=1, help="cycles of each cluster")
    parser.add_argument("--oracle", type=int, default=0, help="tiny clusters for the oracle")
    parser.add_argument("--only", type=int, help="only the cluster of this number")
    parser.add_argument("--out", type=Path, default=Path(".cache/fuzz"), help="for findings")
    return parser


def _progress(text: str, campaign: Campaign) -> None:
    findings = sum(campaign.counts.values())
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}, {campaign.cycles_run} cycles, {findings} findings ")
        sys.stderr.flush()


def _summary(campaign: Campaign, seconds: float) -> str:
    lines = [
        f"seed {campaign.seed}: {campaign.clusters} clusters, {campaign.cycles_run} cycles, "
        f"{campaign.tiny} tiny clusters in {seconds:.0f} s; decisions {dict(campaign.decisions)}"
    ]
    for rule, count in campaign.counts.most_common():
        hit = campaign.first_of[rule]
        lines.append(f"FINDING {count:5}  {rule}: {hit.finding.text} (cluster {hit.cluster})")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
