"""The gang of a job whose pods are listed by role, as in every Kubeflow job (`spec.tfReplicaSpecs` and its like)."""

from __future__ import annotations

from collections.abc import Sequence

from queues.grouping.base import Json, count_at, dig, dig_map, name_of
from queues.grouping.errors import GroupingError

MASTER = "Master"
WORKER = "Worker"


def elastic_gang_size(job: Json, replica_map: str) -> int:
    """Return `minAvailable` where set, else the elastic minimum, else the sum of the replicas of all roles.

    Raises
    ------
    GroupingError : as for `gang_size`; also an elastic job needs replicas in every role
    """
    total = gang_size(job, replica_map, ())
    if _min_available(job) is not None:
        return total
    elastic = count_at(job, "spec", "elasticPolicy", "minReplicas")
    return total if elastic is None else elastic


def gang_size(job: Json, replica_map: str, required_roles: Sequence[str]) -> int:
    """Return `minAvailable` where set, else the sum of the replicas of all roles.

    Raises
    ------
    GroupingError : no replica map, a required role is missing, a role without replicas
    """
    available = _min_available(job)
    return available if available is not None else _sum_of_roles(job, replica_map, required_roles)


def _min_available(job: Json) -> int | None:
    return count_at(job, "spec", "runPolicy", "schedulingPolicy", "minAvailable")


def _sum_of_roles(job: Json, replica_map: str, required_roles: Sequence[str]) -> int:
    name = name_of(job)
    if not isinstance(dig(job, "spec", replica_map), dict):
        raise GroupingError(
            f"the type of the job {name} doesn't have a {replica_map} field. "
            "Please fix the replica field"
        )
    roles = dig_map(job, "spec", replica_map)
    for role in required_roles:
        if role not in roles:
            raise GroupingError(
                f"the type of the job {name} doesn't have a {role} replica spec which is required. "
                "Please fix the replica field"
            )
    total = 0
    for role in roles:
        replicas = count_at(job, "spec", replica_map, role, "replicas", default=0)
        if not replicas:
            raise GroupingError(
                f"the type of the job {name} doesn't allow for 0 {role} pods. "
                "Please fix the replica field"
            )
        total += replicas
    if total <= 0:
        raise GroupingError(
            f"failed calculate number of pods for a distributed job {name}. "
            f"Must be greater than 0, but got {total}"
        )
    return total
