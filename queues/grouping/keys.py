"""Labels and annotations that users and operators write and grouping reads. They are a public contract."""

from __future__ import annotations

PREFIX = "kai.scheduler/"

QUEUE = PREFIX + "queue"
NODE_POOL = PREFIX + "node-pool"
PROJECT = "project"
USER = "user"
PRIORITY_CLASS = "priorityClassName"
PREEMPTIBILITY = PREFIX + "preemptibility"

PREEMPTION_DELAY = PREFIX + "preemption-delay"
STALENESS_GRACE = PREFIX + "staleness-grace-period"
BATCH_MIN_MEMBER = PREFIX + "batch-min-member"
SKIP = PREFIX + "skip-podgrouper"
TOP_OWNER = PREFIX + "top-owner-metadata"

TOPOLOGY = PREFIX + "topology"
TOPOLOGY_REQUIRED = PREFIX + "topology-required-placement"
TOPOLOGY_PREFERRED = PREFIX + "topology-preferred-placement"
SEGMENT_SIZE = PREFIX + "segment-size"
SEGMENT_REQUIRED = PREFIX + "segment-topology-required-placement"
SEGMENT_PREFERRED = PREFIX + "segment-topology-preferred-placement"

POD_GROUP = "pod-group-name"
SUB_GROUP = PREFIX + "subgroup-name"

DEFAULT_QUEUE = "default-queue"
TRAIN = "train"
BUILD = "build"
INFERENCE = "inference"
