"""A shard with backfill keeps room for a gang, lends it to short work, and says so."""

from __future__ import annotations

from kube.resources import BINDREQUESTS, EVENTS, PODGROUPS, PODS, SHARDS
from tests.scheduler.load.objects import group, pod
from tests.scheduler.loop.harness import harness

MAXIMUM = "kaiweb.dev/max-run-time"


def test_short_work_runs_before_the_gang_and_long_work_waits() -> None:
    with harness() as opened:
        spec = {"plugins": {"backfill": {"enabled": True}}}
        opened.seed(SHARDS, {"metadata": {"name": "default"}, "spec": spec})
        opened.cluster(nodes=2, gpus=4)
        body = group("holder", minMember=1)
        body["metadata"]["annotations"] = {
            MAXIMUM: "1h",
            "kai.scheduler/last-start-timestamp": "2026-01-01T00:00:00Z",
        }
        opened.seed(PODGROUPS, body)
        four = {"nvidia.com/gpu": "4"}
        opened.seed(
            PODS, pod("holder-0", group="holder", node="n0", phase="Running", requests=four)
        )
        opened.pending("a-gang", gpus=4, pods=2)
        opened.pending("b-long", gpus=2)
        opened.pending("c-short", gpus=2)
        opened.gateway.patch(
            PODGROUPS, "c-short", {"metadata": {"annotations": {MAXIMUM: "20m"}}}, namespace="ns"
        )
        opened.cycle(seconds=60)
        bound = [key[2] for key in opened.gateway.objects if key[0] == BINDREQUESTS]
        assert bound == ["c-short-0"]
        # What was bound a moment ago still ends in time, though its pod is on no node yet.
        opened.cycle(seconds=1)
        assert [key[2] for key in opened.gateway.objects if key[0] == BINDREQUESTS] == bound
        codes = {
            event["involvedObject"]["name"]: event["metadata"]["annotations"][
                "kaiweb.dev/reason-code"
            ]
            for event in _events(opened)
        }
        assert (codes["a-gang-0"], codes["b-long-0"]) == ("StartExpected", "RoomKept")


def _events(opened):
    bodies = (
        opened.gateway.raw(EVENTS, key[2], key[1])
        for key in list(opened.gateway.objects)
        if key[0] == EVENTS
    )
    return [body for body in bodies if "annotations" in body["metadata"]]
