"""Labels, annotations, finalizers and other names that users, operators and several packages share.

They are a public contract: KAI's names where KAI has one, names under `kaiweb.dev/` where it has none.
"""

from __future__ import annotations

import os

PREFIX = "kai.scheduler/"

# Set by users on a workload.
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
IGNORE_GANG = PREFIX + "ignore-workload-api"

TOPOLOGY = PREFIX + "topology"
TOPOLOGY_REQUIRED = PREFIX + "topology-required-placement"
TOPOLOGY_PREFERRED = PREFIX + "topology-preferred-placement"
SEGMENT_SIZE = PREFIX + "segment-size"
SEGMENT_REQUIRED = PREFIX + "segment-topology-required-placement"
SEGMENT_PREFERRED = PREFIX + "segment-topology-preferred-placement"

# Written by components on pods, pod groups and bind requests.
POD_GROUP = "pod-group-name"
SUB_GROUP = PREFIX + "subgroup-name"
TOP_OWNER = PREFIX + "top-owner-metadata"
STALE_SINCE = PREFIX + "stale-podgroup-timestamp"
LAST_START = PREFIX + "last-start-timestamp"
LAST_EVICTION = PREFIX + "last-eviction-timestamp"
NUMA_OBSERVED = PREFIX + "numa-placement-observed"
NUMA_PREDICTED = PREFIX + "numa-placement-predicted"
RECEIVED_TYPE = "received-resource-type"
FENCE = "kaiweb.dev/fence"
BINDER_CLAIM = "kaiweb.dev/binder"
BIND_UNDO = "kaiweb.dev/undo"
SELECTED_NODE_LABEL = "selected-node"
REASON_CODE = "kaiweb.dev/reason-code"
GANG = "kaiweb.dev/gang"
BIND_FAILURES = "kaiweb.dev/bind-failures"
BINDS_RESET_AT = "kaiweb.dev/binds-reset-at"
HOLD = "kaiweb.dev/hold"
HOLD_UNTIL = "kaiweb.dev/hold-until"
HELD_BY = "kaiweb.dev/held-by"
MAX_RUN_TIME = "kaiweb.dev/max-run-time"
REQUEUE_DELAY = "kaiweb.dev/requeue-delay"
RUN_DEADLINE = "kaiweb.dev/run-deadline"
REQUEUE_BEFORE = "kaiweb.dev/requeue-before"
# Set by admins on a Queue; read by `queues/tree/options.py`.
USER_FAIRNESS = "kaiweb.dev/user-fairness"
GPU_MODELS = "kaiweb.dev/gpu-models"
UNUSED_RESERVATION = "kaiweb.dev/unused"
ASSUMED_SCHEDULER = "kaiweb.dev/assumed-scheduler"

# Parts of GPUs.
GPU_FRACTION = "gpu-fraction"
GPU_MEMORY_MIB = "gpu-memory"
GPU_FRACTION_DEVICES = "gpu-fraction-num-devices"
GPU_FRACTION_CONTAINER = "gpu-fraction-container-name"
GPU_GROUP = "runai-gpu-group"
GPU_GROUP_PREFIX = GPU_GROUP + "/"
RESERVED_DEVICE = "run.ai/reserve_for_gpu_index"
SHARED_GPU_CONFIG_MAP = "runai/shared-gpu-configmap"

# Resources, and labels of nodes about their GPUs.
NVIDIA_GPU = "nvidia.com/gpu"
AMD_GPU = "amd.com/gpu"
MIG_PREFIX = "nvidia.com/mig-"
NODE_GPU_MEMORY = "nvidia.com/gpu.memory"
NODE_GPU_COUNT = "nvidia.com/gpu.count"
NODE_GPU_PRODUCT = "nvidia.com/gpu.product"
NODE_MIG_STRATEGY = "nvidia.com/mig.strategy"
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"

# Names of objects and components.
SCHEDULER_NAME = "kai-scheduler"
#: The namespace of the installation: its accounts, Leases and Secrets.
SYSTEM_NAMESPACE = os.environ.get("KAIWEB_NAMESPACE") or "kai-scheduler"
RESERVATION = "kai-resource-reservation"
SCALE_ADJUST = "kai-scale-adjust"
DEFAULT_QUEUE = "default-queue"
TRAIN = "train"
BUILD = "build"
INFERENCE = "inference"
SHARD_TASK_PREFIX = "shard."
