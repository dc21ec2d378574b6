"""What others say of a pod group is joined with what the mirror knows of it."""

from __future__ import annotations

import pytest

from kube.resources import PODGROUPS, PODS, QUEUES
from queues.mirror.feed import Mirror
from queues.mirror.kinds import KINDS
from queues.mirror.rollup import ReasonSources
from queues.mirror.writer import Writer
from queues.models import LiveChange, PodGroup
from queues.workloads.reasons import Standing
from tests.queues.cluster_objects import a_group, a_pod, a_queue, added, modified

pytestmark = pytest.mark.django_db


def test_the_schedulers_word_and_place_are_joined_with_what_the_mirror_knows() -> None:
    standings_by_group = {
        "default/pg": Standing(code="OrderBehind", text="others took it", position=7)
    }
    writer = Writer(
        ReasonSources(
            standings=lambda keys: {
                k: standings_by_group[k] for k in keys if k in standings_by_group
            }
        )
    )
    mirror = Mirror(KINDS, writer)
    mirror.consume(
        [
            added(QUEUES, a_queue("team", 1)),
            added(PODGROUPS, a_group("pg", 2)),
            added(PODS, a_pod("p", 3, group="pg")),
        ]
    )

    def shown() -> tuple[str, str, int | None]:
        row = PodGroup.objects.get()
        return row.reason_code, row.reason_text, row.position

    assert shown() == ("OrderBehind", "others took it", 7)
    standings_by_group["default/pg"] = Standing(code="DeviceShortage", position=2)
    LiveChange.objects.all().delete()
    writer.refresh_groups(["default/pg"])
    assert shown() == ("DeviceShortage", "", 2)
    changes = LiveChange.objects.values_list("kind", "key")
    assert ("workload", "default/pg") in changes
    mirror.consume([modified(PODS, a_pod("p", 4, group="pg", node="n"))])
    assert shown() == ("", "", None)


@pytest.mark.parametrize(
    ("backoff", "pool", "expected"),
    [(1, "default", True), (-1, "default", False), (None, "default", False), (1, "a100", False)],
)
def test_a_group_is_held_when_its_only_attempt_on_this_pool_is_over(
    backoff: int | None, pool: str, expected: bool
) -> None:
    condition = {"type": "UnschedulableOnNodePool", "nodePool": pool, "transitionID": "1"}
    group = a_group("pg", 2, conditions=[condition], backoff=backoff)
    Mirror(KINDS, Writer()).consume([added(PODGROUPS, group)])
    assert PodGroup.objects.get().is_backed_off is expected
