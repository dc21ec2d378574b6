"""The kinds that kaiweb reads and writes, each as a constant with its address in the API."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind's address: `/api/v1/...` for the core group, `/apis/<group>/<version>/...` otherwise.

    `older_versions` are asked for, in this order, where a server does not serve `version`.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    older_versions: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """Return the `apiVersion` of the kind's objects, such as `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def at_version(self, version: str) -> Resource:
        """Return the kind in another version."""
        return replace(self, version=version, older_versions=())

    def path(self, namespace: str | None = None, name: str | None = None, sub: str = "") -> str:
        """Return the URL path of the collection, of one object, or of its subresource."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if sub:
            parts.append(sub)
        return "/" + "/".join(parts)


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group="", version="v1", plural=plural, kind=kind, namespaced=namespaced)


def _named(
    group: str, version: str, plural: str, kind: str, *, namespaced: bool = True
) -> Resource:
    return Resource(group=group, version=version, plural=plural, kind=kind, namespaced=namespaced)


def _devices(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(
        group="resource.k8s.io",
        version="v1",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        older_versions=("v1beta2", "v1beta1"),
    )


PODS = _core("pods", "Pod")
NODES = _core("nodes", "Node", namespaced=False)
NAMESPACES = _core("namespaces", "Namespace", namespaced=False)
EVENTS = _core("events", "Event")
CONFIGMAPS = _core("configmaps", "ConfigMap")
SECRETS = _core("secrets", "Secret")
SERVICES = _core("services", "Service")
SERVICE_ACCOUNTS = _core("serviceaccounts", "ServiceAccount")
PVCS = _core("persistentvolumeclaims", "PersistentVolumeClaim")
PVS = _core("persistentvolumes", "PersistentVolume", namespaced=False)

JOBS = _named("batch", "v1", "jobs", "Job")
CRONJOBS = _named("batch", "v1", "cronjobs", "CronJob")
DEPLOYMENTS = _named("apps", "v1", "deployments", "Deployment")
REPLICASETS = _named("apps", "v1", "replicasets", "ReplicaSet")
STATEFULSETS = _named("apps", "v1", "statefulsets", "StatefulSet")
TOKEN_REVIEWS = _named(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
POD_DISRUPTION_BUDGETS = _named("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
SERVICE_MONITORS = _named("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
LEASES = _named("coordination.k8s.io", "v1", "leases", "Lease")
PRIORITY_CLASSES = _named(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
WORKLOADS = _named("scheduling.k8s.io", "v1alpha1", "workloads", "Workload")
#: PodGroups of Kubernetes itself; `PODGROUPS` are those of KAI.
UPSTREAM_PODGROUPS = _named("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
STORAGE_CLASSES = _named("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSI_DRIVERS = _named("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES = _named(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"
)
RESOURCE_CLAIMS = _devices("resourceclaims", "ResourceClaim", namespaced=True)
RESOURCE_SLICES = _devices("resourceslices", "ResourceSlice", namespaced=False)
DEVICE_CLASSES = _devices("deviceclasses", "DeviceClass", namespaced=False)
#: Up to Kubernetes 1.35 in v1alpha3 only, although the group has a v1beta2 with other kinds.
DEVICE_TAINT_RULES = Resource(
    group="resource.k8s.io",
    version="v1alpha3",
    plural="devicetaintrules",
    kind="DeviceTaintRule",
    namespaced=False,
    older_versions=("v1beta2",),
)
SELF_ACCESS_REVIEWS = _named(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
SUBJECT_ACCESS_REVIEWS = _named(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
SELF_SUBJECT_REVIEWS = _named(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
CRDS = _named(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)

QUEUES = _named("scheduling.run.ai", "v2", "queues", "Queue", namespaced=False)
PODGROUPS = _named("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
BINDREQUESTS = _named("scheduling.run.ai", "v1alpha2", "bindrequests", "BindRequest")
CONFIGS = _named("kai.scheduler", "v1", "configs", "Config", namespaced=False)
SHARDS = _named("kai.scheduler", "v1", "schedulingshards", "SchedulingShard", namespaced=False)
TOPOLOGIES = _named("kai.scheduler", "v1alpha1", "topologies", "Topology", namespaced=False)
NODE_RESOURCE_TOPOLOGIES = _named(
    "topology.node.k8s.io",
    "v1alpha2",
    "noderesourcetopologies",
    "NodeResourceTopology",
    namespaced=False,
)
CLUSTER_POLICIES = _named("nvidia.com", "v1", "clusterpolicies", "ClusterPolicy", namespaced=False)
