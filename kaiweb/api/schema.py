"""The shapes of the API for its OpenAPI document. They describe; `frontend.items` produces."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

NUMBER = {"type": "number"}
AMOUNTS_SCHEMA = {
    "type": "object",
    "properties": {"gpu": NUMBER, "cpuMilli": NUMBER, "memoryBytes": NUMBER},
    "required": ["gpu", "cpuMilli", "memoryBytes"],
}
BOUND = {"oneOf": [NUMBER, {"type": "string", "enum": ["unlimited"]}]}
BOUNDS_SCHEMA = {
    "type": "object",
    "description": "An absent resource is unset.",
    "properties": {"gpu": BOUND, "cpuMilli": BOUND, "memoryBytes": BOUND},
}
WANTED = {"oneOf": [*BOUND["oneOf"], {"type": "null"}]}
WANTED_SCHEMA = {
    "type": "object",
    "description": "null unsets; a resource that is not named stays.",
    "properties": {"gpu": WANTED, "cpuMilli": WANTED, "memoryBytes": WANTED},
}
WEIGHTS_SCHEMA = {
    "type": "object",
    "properties": {"gpu": NUMBER, "cpuMilli": NUMBER, "memoryBytes": NUMBER},
}


@extend_schema_field(AMOUNTS_SCHEMA)
class Amounts(s.JSONField):
    """GPUs, millicores, bytes."""


@extend_schema_field(BOUNDS_SCHEMA)
class Bounds(s.JSONField):
    """Quota or limit."""


@extend_schema_field(WANTED_SCHEMA)
class WantedBounds(s.JSONField):
    """Quota or limit in a write."""


@extend_schema_field(WEIGHTS_SCHEMA)
class Weights(s.JSONField):
    """Over-quota weights."""


class AsOf(s.Serializer[object]):
    time = s.DateTimeField(allow_null=True)
    session = s.IntegerField(allow_null=True)
    rv = s.CharField()


class Queue(s.Serializer[object]):
    name = s.CharField()
    displayName = s.CharField()
    parent = s.CharField(allow_null=True)  # type: ignore[assignment]
    depth = s.IntegerField()
    children = s.ListField(child=s.CharField())
    leaf = s.BooleanField()
    priority = s.IntegerField(allow_null=True)
    preemptMinRuntime = s.CharField(allow_null=True)
    reclaimMinRuntime = s.CharField(allow_null=True)
    quota = Bounds()
    limit = Bounds()
    weight = Weights()
    allocated = Amounts()
    allocatedNonPreemptible = Amounts()
    requested = Amounts()
    share = Amounts(allow_null=True)
    pendingWorkloads = s.IntegerField()
    runningWorkloads = s.IntegerField()
    totalWorkloads = s.IntegerField()
    orphan = s.BooleanField()
    problems = s.ListField(child=s.CharField())
    managedBy = s.CharField()
    labels = s.DictField(child=s.CharField())
    createdAt = s.DateTimeField()
    generation = s.IntegerField()
    etag = s.CharField()


class QueueWrite(s.Serializer[object]):
    displayName = s.CharField(required=False, allow_null=True)
    parent = s.CharField(required=False, allow_null=True)  # type: ignore[assignment]
    priority = s.IntegerField(required=False, allow_null=True)
    preemptMinRuntime = s.CharField(required=False, allow_null=True)
    reclaimMinRuntime = s.CharField(required=False, allow_null=True)
    quota = WantedBounds(required=False)
    limit = WantedBounds(required=False)
    weight = Weights(required=False)
    labels = s.DictField(child=s.CharField(allow_null=True), required=False)


class QueueCreate(QueueWrite):
    name = s.CharField()


class Finding(s.Serializer[object]):
    pointer = s.CharField()
    code = s.CharField()
    message = s.CharField()
    given = s.JSONField(allow_null=True)
    allowed = s.JSONField(allow_null=True)


class Difference(s.Serializer[object]):
    pointer = s.CharField()
    before = s.JSONField(allow_null=True)
    after = s.JSONField(allow_null=True)


class QueueWritten(s.Serializer[object]):
    queue = Queue()
    changed = s.BooleanField()
    dryRun = s.BooleanField()
    warnings = Finding(many=True)
    diff = Difference(many=True)


class Page(s.Serializer[object]):
    next = s.CharField(allow_null=True)
    asOf = AsOf()
    count = s.IntegerField(required=False)


class QueueList(Page):
    items = Queue(many=True)


class Workload(s.Serializer[object]):
    namespace = s.CharField()
    name = s.CharField()
    kind = s.CharField()
    owner = s.CharField()
    user = s.CharField()
    queue = s.CharField()
    priorityClass = s.CharField()
    priority = s.IntegerField(allow_null=True)
    preemptible = s.BooleanField()
    state = s.ChoiceField(choices=["pending", "gated", "partial", "running", "finished", "failed"])
    minMember = s.IntegerField()
    ready = s.IntegerField()
    pods = s.IntegerField()
    gated = s.IntegerField()
    gpu = s.FloatField()
    gpuKind = s.ChoiceField(choices=["whole", "fraction", "memory", "none"])
    nodes = s.ListField(child=s.CharField())
    reason = s.CharField(allow_blank=True)
    reasonText = s.CharField(allow_blank=True)
    reasonSince = s.DateTimeField(allow_null=True)
    createdAt = s.DateTimeField()
    startedAt = s.DateTimeField(allow_null=True)
    evictions = s.IntegerField()
    rv = s.CharField()


class WorkloadList(Page):
    items = Workload(many=True)


class WorkloadPod(s.Serializer[object]):
    name = s.CharField()
    state = s.CharField()
    node = s.CharField(allow_blank=True)
    gpu = s.FloatField()
    devices = s.ListField(child=s.IntegerField())
    reason = s.CharField(allow_blank=True)
    message = s.CharField(allow_blank=True)
    createdAt = s.DateTimeField()
    startedAt = s.DateTimeField(allow_null=True)


class PodList(s.Serializer[object]):
    items = WorkloadPod(many=True)


class Evidence(s.Serializer[object]):
    name = s.CharField()
    asked = s.CharField(allow_blank=True)
    available = s.CharField(allow_blank=True)
    where = s.CharField(allow_blank=True)


class OtherReason(s.Serializer[object]):
    reason = s.CharField()
    text = s.CharField()


class Stage(s.Serializer[object]):
    stage = s.CharField()
    state = s.CharField()
    text = s.CharField(allow_blank=True)


class Explanation(s.Serializer[object]):
    reason = s.CharField(allow_blank=True)
    text = s.CharField(allow_blank=True)
    since = s.DateTimeField(allow_null=True)
    evidence = Evidence(many=True)
    others = OtherReason(many=True)
    stages = Stage(many=True)


class Explain(Explanation):
    state = s.CharField()
    asOf = AsOf()


class SubGroup(s.Serializer[object]):
    name = s.CharField()
    parent = s.CharField(allow_null=True)  # type: ignore[assignment]
    minMember = s.IntegerField(allow_null=True)


class WorkloadDetail(Workload):
    subGroups = SubGroup(many=True)
    podList = WorkloadPod(many=True)
    explain = Explanation()


class Holder(s.Serializer[object]):
    pod = s.CharField()
    workload = s.CharField(allow_blank=True)
    queue = s.CharField(allow_blank=True)
    gpu = s.FloatField()


class Device(s.Serializer[object]):
    index = s.IntegerField()
    state = s.CharField()
    used = s.FloatField()
    group = s.CharField(allow_blank=True)
    holders = Holder(many=True)


class Gpu(Device):
    node = s.CharField()
    model = s.CharField()


class GpuList(Page):
    items = Gpu(many=True)


class Taken(s.Serializer[object]):
    allocatable = s.FloatField()
    allocated = s.FloatField()


class Node(s.Serializer[object]):
    name = s.CharField()
    model = s.CharField(allow_blank=True)
    pool = s.CharField(allow_blank=True)
    zone = s.CharField(allow_blank=True)
    rack = s.CharField(allow_blank=True)
    ready = s.BooleanField()
    cordoned = s.BooleanField()
    gpuTotal = s.IntegerField()
    gpuAllocated = s.FloatField()
    gpuMemoryBytes = s.IntegerField()
    cpu = Taken()
    memory = Taken()
    pods = s.IntegerField()
    taints = s.ListField(child=s.CharField())
    devices = Device(many=True)


class NodeList(Page):
    items = Node(many=True)


class Action(s.Serializer[object]):
    name = s.CharField()
    ms = s.FloatField()
    attempted = s.IntegerField(required=False)
    succeeded = s.IntegerField(required=False)


class Session(s.Serializer[object]):
    id = s.IntegerField()
    shard = s.CharField()
    number = s.IntegerField()
    startedAt = s.DateTimeField()
    durationMs = s.FloatField()
    snapshotMs = s.FloatField()
    commitMs = s.FloatField()
    actions = Action(many=True)
    nodes = s.IntegerField()
    queues = s.IntegerField()
    podGroups = s.IntegerField()
    pods = s.IntegerField()
    pendingBefore = s.IntegerField()
    bound = s.IntegerField()
    evicted = s.IntegerField()
    nominated = s.IntegerField()
    unschedulable = s.IntegerField()
    error = s.CharField(allow_blank=True)


class SessionList(Page):
    items = Session(many=True)


class BindRequest(s.Serializer[object]):
    namespace = s.CharField()
    name = s.CharField()
    pod = s.CharField()
    node = s.CharField()
    phase = s.CharField()
    reason = s.CharField(allow_blank=True)
    failedAttempts = s.IntegerField()
    resourceType = s.CharField(allow_blank=True)
    gpuGroups = s.ListField(child=s.CharField())
    createdAt = s.DateTimeField()


class BindRequestList(Page):
    items = BindRequest(many=True)


class Gpus(s.Serializer[object]):
    total = s.FloatField()
    allocated = s.FloatField()
    free = s.FloatField()
    unusable = s.FloatField()


class ModelGpus(Gpus):
    model = s.CharField()


class NodeCounts(s.Serializer[object]):
    total = s.IntegerField()
    ready = s.IntegerField()
    cordoned = s.IntegerField()


class QueueCounts(s.Serializer[object]):
    total = s.IntegerField()
    orphans = s.IntegerField()


class WorkloadCounts(s.Serializer[object]):
    pending = s.IntegerField()
    running = s.IntegerField()
    finished = s.IntegerField()
    failed = s.IntegerField()


class ReasonCount(s.Serializer[object]):
    reason = s.CharField()
    workloads = s.IntegerField()
    gpu = s.FloatField()


class QueueGpus(s.Serializer[object]):
    queue = s.CharField()
    gpu = s.FloatField()


class SessionCounts(s.Serializer[object]):
    perMinute = s.IntegerField()
    lastId = s.IntegerField(allow_null=True)
    lastDurationMs = s.FloatField(allow_null=True)
    lastStartedAt = s.DateTimeField(allow_null=True)
    p95Ms = s.FloatField(allow_null=True)


class Cluster(s.Serializer[object]):
    gpus = Gpus()
    models = ModelGpus(many=True)
    nodes = NodeCounts()
    queues = QueueCounts()
    workloads = WorkloadCounts()
    pendingByReason = ReasonCount(many=True)
    starved = QueueGpus(many=True)
    borrowing = QueueGpus(many=True)
    sessions = SessionCounts()
    mirrorAt = s.DateTimeField(allow_null=True)
    asOf = AsOf()


class RoleGrant(s.Serializer[object]):
    role = s.ChoiceField(choices=["viewer", "editor", "admin"])
    subtree = s.CharField(allow_null=True)


class MeRights(s.Serializer[object]):
    editQueues = s.BooleanField()
    adminQueues = s.BooleanField()
    manageTokens = s.BooleanField()


class Me(s.Serializer[object]):
    username = s.CharField()
    displayName = s.CharField()
    kind = s.ChoiceField(choices=["session", "token"])
    isAdmin = s.BooleanField()
    roles = RoleGrant(many=True)
    rights = MeRights()
    csrfToken = s.CharField(required=False)


class Version(s.Serializer[object]):
    version = s.CharField()
    epoch = s.CharField()


class Token(s.Serializer[object]):
    id = s.IntegerField()
    name = s.CharField()
    prefix = s.CharField()
    scopes = s.ListField(child=s.CharField())
    subtree = s.CharField(allow_null=True)
    createdAt = s.DateTimeField()
    expiresAt = s.DateTimeField(allow_null=True)
    lastUsedAt = s.DateTimeField(allow_null=True)


class TokenList(s.Serializer[object]):
    items = Token(many=True)


class TokenCreate(s.Serializer[object]):
    name = s.CharField()
    scopes = s.ListField(child=s.CharField(), required=False)
    subtree = s.CharField(required=False, allow_null=True)
    expiresAt = s.DateTimeField(required=False, allow_null=True)


class TokenCreated(Token):
    token = s.CharField()


class Ticket(s.Serializer[object]):
    ticket = s.CharField()
    expiresIn = s.IntegerField()
