"""`kaiweb run_pod_grouper`: the pod grouper alone."""

from __future__ import annotations

from queues.management.commands import run_controllers


class Command(run_controllers.Command):
    """Run the pod grouper until a signal comes."""

    help = "Put every pod of our scheduler into its pod group."
    keeps_status = False
