"""The query parameters and headers of the API for its OpenAPI document."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter


def _query(name: str, text: str, kind: OpenApiTypes = OpenApiTypes.STR) -> OpenApiParameter:
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=text)


def _if_match(what: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(
        "If-Match",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        required=required,
        description=f"ETag of {what}.",
    )


PAGE = [
    _query("limit", "Rows of a page, 1 to 1000.", OpenApiTypes.INT),
    _query("cursor", "`next` of the answer before."),
    _query("count", "`exact` adds the number of all rows."),
    _query("sort", "A field, `-` before it for descending; a second one may be the key."),
    _query("fields", "Only these fields of the items, comma for and; the others are left out."),
]
_Q = _query("q", "Part of a name.")
QUEUE_FILTERS = [
    *PAGE, _Q, _query("parent", "Direct parent; empty for roots."), _query("root", "Subtree."),
]  # fmt: skip
WORKLOAD_FILTERS = [
    *PAGE,
    _Q,
    _query("queue", "Queues, comma for or."),
    _query("subtree", "Also the queues below.", OpenApiTypes.BOOL),
    _query("state", "States, comma for or."),
    _query("reason", "Reason codes, comma for or."),
    _query("namespace", "Namespaces."),
    _query("owner", "Names of owning objects."),
    _query("createdAfter", "Only workloads created at this time or later.", OpenApiTypes.DATETIME),
    _query("idle", "Only workloads with GPUs that they do not use.", OpenApiTypes.BOOL),
]
VERIFY = _query(
    "verify", "Also what would unblock it, tried in simulations (up to 15 s).", OpenApiTypes.BOOL
)
ORDER_FILTERS = [*PAGE, _query("pool", "Node pool; empty for the default one.")]
NODE_FILTERS = [*PAGE, _Q, _query("pool", "Node pools."), _query("model", "GPU models.")]
GPU_FILTERS = [
    *PAGE, _query("node", "Nodes."), _query("model", "GPU models."), _query("state", "States."),
    _query("idle", "Only allocated GPUs that are not used.", OpenApiTypes.BOOL),
]  # fmt: skip
PERIOD = [
    _query("from", "Start, RFC 3339; by default seven days before the end.", OpenApiTypes.DATETIME),
    _query("to", "End, RFC 3339; by default now.", OpenApiTypes.DATETIME),
    OpenApiParameter(
        "step",
        OpenApiTypes.INT,
        OpenApiParameter.QUERY,
        enum=[60, 300, 3600, 86_400],
        description="Seconds of a step; coarser where finer sums are not kept or there would be too many.",
    ),
]
_BELOW = _query("queue", "Queues, each with those below it; comma for or.")
_BY = OpenApiParameter(
    "by",
    OpenApiTypes.STR,
    OpenApiParameter.QUERY,
    enum=["queue", "owner", "model"],
    description="What the rows stand for; by default queues.",
)
USAGE_FILTERS = [*PAGE, *PERIOD, _BELOW, _BY]
MONTH_FILTERS = [*PAGE, _BELOW, _BY]
QUEUE_USAGE_FILTERS = [*PAGE, *PERIOD]
USAGE_SERIES_FILTERS = [*PERIOD, _BELOW]
QUEUE_SERIES_FILTERS = [
    *PERIOD,
    OpenApiParameter(
        "queue",
        OpenApiTypes.STR,
        OpenApiParameter.QUERY,
        required=True,
        description="Queues, separated by commas.",
    ),
    _query("fields", "Of allocated, waiting, share, quota, limit; by default all."),
]
SESSION_FILTERS = [*PAGE, _query("shard", "Shards.")]
DECISION_FILTERS = [
    _query("kind", "Of bind, nominate, move, evict; comma for or."),
    _query("queue", "Queues, comma for or."),
    _query("workload", "Workloads, as namespace/name."),
]
EVICTION_PERIOD = [
    _query("from", "Start, RFC 3339; by default a day before the end.", OpenApiTypes.DATETIME),
    _query("to", "End, RFC 3339; by default now.", OpenApiTypes.DATETIME),
]
EVICTION_FILTERS = [
    *PAGE,
    *EVICTION_PERIOD,
    _query("queue", "Queues whose pods were evicted."),
    _query("evictorQueue", "Queues that got the room."),
    _query("rule", "Rules, comma for or."),
    _query("workload", "Workloads whose pods were evicted, as namespace/name."),
    _query("evictor", "Workloads that got the room, as namespace/name."),
]
AUDIT_FILTERS = [
    *PAGE,
    _query("kind", "Kinds of objects, comma for or."),
    _query("queue", "Queues."),
    _query("actor", "Users."),
    _query("state", "States."),
    _query("since", "Only writes at this time or later.", OpenApiTypes.DATETIME),
    _query("until", "Only writes before this time.", OpenApiTypes.DATETIME),
]
BIND_REQUEST_FILTERS = [
    *PAGE, _query("namespace", "Namespaces."), _query("phase", "Phases."), _query("node", "Nodes."),
]  # fmt: skip
REASON = _query("reason", "Why, for the audit log.")
ALL_TOKENS = _query("all", "Tokens of all users (admins).", OpenApiTypes.BOOL)
BINDING_FILTERS = [_query("username", "Users."), _query("subtree", "Queues.")]
ONLY_DRY_RUN = _query("dryRun", "Check and answer, write nothing.", OpenApiTypes.BOOL)
SIMULATE = _query(
    "simulate", "With dryRun: also simulate two cycles, and add the preview.", OpenApiTypes.BOOL
)
DRY_RUN = [
    _query("dryRun", "Check and show the difference, write nothing.", OpenApiTypes.BOOL),
    SIMULATE,
    REASON,
    _if_match("the queue"),
]
SHARD = _query("shard", "The shard; by default `default`.")
SNAPSHOT = [
    SHARD,
    _query("anonymise", "Replace all names.", OpenApiTypes.BOOL),
]
OPERATION_STATES = _query("state", "Of queued, running, done, failed; comma for or.")
SHARD_WRITE = [ONLY_DRY_RUN, REASON, _if_match("the shard", required=True)]
POLICIES_WRITE = [ONLY_DRY_RUN, REASON, _if_match("the policies", required=True)]
PRICES_WRITE = [
    ONLY_DRY_RUN,
    REASON,
    _if_match("the price, or for the currency of the price list", required=True),
]
NOTIFICATION_WRITE = [ONLY_DRY_RUN, REASON, _if_match("the webhook", required=True)]
TREE = [
    _query("prune", "Delete queues below the root that the body does not name.", OpenApiTypes.BOOL),
    OpenApiParameter(
        "policy",
        OpenApiTypes.STR,
        enum=["warn", "block", "drain"],
        description="For a bound that falls below what its queue uses.",
    ),
    *DRY_RUN,
]
MANAGED_FIELDS = _query("managedFields", "Also who wrote which field.", OpenApiTypes.BOOL)
TIMEOUT = OpenApiParameter(
    "timeout",
    {"type": "integer", "minimum": 0, "maximum": 300, "default": 0},
    OpenApiParameter.QUERY,
    description="Seconds to wait at most.",
)
EVENTS = [
    OpenApiParameter(
        "topic",
        OpenApiTypes.STR,
        OpenApiParameter.QUERY,
        required=True,
        description="cluster, queues, workloads, nodes, sessions, or queue:NAME, node:NAME, workload:NAMESPACE/NAME.",
    ),
    _query("queue", "Queues, comma for or (workloads)."),
    _query("subtree", "Also the queues below.", OpenApiTypes.BOOL),
    _query("state", "States, comma for or (workloads)."),
    _query("reason", "Reason codes, comma for or (workloads)."),
    _query("namespace", "Namespaces, comma for or (workloads)."),
    _query("q", "Part of a name (workloads)."),
    _query("root", "Subtree (queues)."),
    _query("pool", "Node pools, comma for or (nodes)."),
    _query("shard", "Shards, comma for or (sessions)."),
    OpenApiParameter(
        "Last-Event-ID",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        description="Id of the last event received, to get what was missed instead of a snapshot.",
    ),
]
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The same request under the same key gets the first answer again, for a day.",
)
APPLY = [
    _query("fieldManager", "Apply as this field manager; then no If-Match is needed."),
    _query(
        "force",
        "Take over fields of other managers (admins; tokens need the scope apply:force).",
        OpenApiTypes.BOOL,
    ),
    OpenApiParameter(
        "If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="`*` to create."
    ),
]
