"""Field numbers of the protobuf messages that the sandbox reads, as a compact table.

One line per message: `number name type`, separated by semicolons. Without a type a field is text;
other types are `bool`, `int`, `bytes`, `time`, `quantity`, `port` (a number or a name) or a message,
with `[]` for repeated fields and `{}` for maps from text. `?` marks a Go pointer, whose zero value is
not the same as absent; `-` marks a field that a client may send and the server ignores.
"""

from __future__ import annotations

_REVIEW = "1 metadata ObjectMeta; 2 spec AccessReviewSpec; 3 status -"
_BINDING = "1 metadata ObjectMeta; 2 subjects Subject[]; 3 roleRef RoleRef"
_RULES = "1 metadata ObjectMeta; 2 rules PolicyRule[]"

TEXT: dict[str, str] = {
    "ObjectMeta": (
        "1 name; 2 generateName; 3 namespace; 4 selfLink -; 5 uid; 6 resourceVersion; 7 generation -;"
        "8 creationTimestamp -; 9 deletionTimestamp -; 10 deletionGracePeriodSeconds -;"
        "11 labels text{}; 12 annotations text{}; 13 ownerReferences OwnerReference[];"
        "14 finalizers text[]; 17 managedFields -"
    ),
    "OwnerReference": "1 kind; 3 name; 4 uid; 5 apiVersion; 6 controller bool?; 7 blockOwnerDeletion bool?",
    "LabelSelector": "1 matchLabels text{}; 2 matchExpressions LabelSelectorRequirement[]",
    "LabelSelectorRequirement": "1 key; 2 operator; 3 values text[]",
    "ObjectReference": "1 kind; 2 namespace; 3 name; 4 uid; 5 apiVersion; 6 resourceVersion; 7 fieldPath",
    "LocalObjectReference": "1 name",
    # reviews and tokens
    "AccessReviewSpec": (
        "1 resourceAttributes ResourceAttributes; 2 nonResourceAttributes NonResourceAttributes;"
        "3 user; 4 groups text[]; 6 uid"
    ),
    "ResourceAttributes": "1 namespace; 2 verb; 3 group; 4 version; 5 resource; 6 subresource; 7 name",
    "NonResourceAttributes": "1 path; 2 verb",
    "SelfSubjectAccessReview": _REVIEW,
    "SubjectAccessReview": _REVIEW,
    "LocalSubjectAccessReview": _REVIEW,
    "RulesReviewSpec": "1 namespace",
    "SelfSubjectRulesReview": "1 metadata ObjectMeta; 2 spec RulesReviewSpec; 3 status -",
    "SelfSubjectReview": "1 metadata ObjectMeta; 2 status -",
    "TokenReviewSpec": "1 token; 2 audiences text[]",
    "TokenReview": "1 metadata ObjectMeta; 2 spec TokenReviewSpec; 3 status -",
    "BoundObjectReference": "1 kind; 2 apiVersion; 3 name; 4 uid",
    "TokenRequestSpec": "1 audiences text[]; 3 boundObjectRef BoundObjectReference; 4 expirationSeconds int",
    "TokenRequest": "1 metadata ObjectMeta; 2 spec TokenRequestSpec; 3 status -",
    # small objects
    "ServiceAccount": (
        "1 metadata ObjectMeta; 3 imagePullSecrets LocalObjectReference[];"
        "4 automountServiceAccountToken bool?"
    ),
    "NamespaceSpec": "1 finalizers text[]",
    "Namespace": "1 metadata ObjectMeta; 2 spec NamespaceSpec; 3 status -",
    "ConfigMap": "1 metadata ObjectMeta; 2 data text{}; 3 binaryData bytes{}; 4 immutable bool?",
    "Secret": "1 metadata ObjectMeta; 2 data bytes{}; 3 type; 4 stringData text{}; 5 immutable bool?",
    "PriorityClass": (
        "1 metadata ObjectMeta; 2 value int?; 3 globalDefault bool; 4 description; 5 preemptionPolicy"
    ),
    "PolicyRule": "1 verbs text[]; 2 apiGroups text[]; 3 resources text[]; 4 resourceNames text[]; 5 nonResourceURLs text[]",
    "Role": _RULES,
    "ClusterRole": _RULES,
    "Subject": "1 kind; 2 apiGroup; 3 name; 4 namespace",
    "RoleRef": "1 apiGroup; 2 kind; 3 name",
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "LeaseSpec": (
        "1 holderIdentity; 2 leaseDurationSeconds int; 3 acquireTime time; 4 renewTime time;"
        "5 leaseTransitions int?"
    ),
    "Lease": "1 metadata ObjectMeta; 2 spec LeaseSpec",
    # deletion, eviction, binding
    "Preconditions": "1 uid; 2 resourceVersion",
    "DeleteOptions": (
        "1 gracePeriodSeconds int?; 2 preconditions Preconditions; 3 orphanDependents bool?;"
        "4 propagationPolicy; 5 dryRun text[]"
    ),
    "Eviction": "1 metadata ObjectMeta; 2 deleteOptions DeleteOptions",
    "Binding": "1 metadata ObjectMeta; 2 target ObjectReference",
    # events
    "EventSource": "1 component; 2 host",
    "EventSeries": "1 count int; 2 lastObservedTime time",
    "Event": (
        "1 metadata ObjectMeta; 2 involvedObject ObjectReference; 3 reason; 4 message;"
        "5 source EventSource; 6 firstTimestamp time; 7 lastTimestamp time; 8 count int; 9 type;"
        "10 eventTime time; 11 series EventSeries; 12 action; 13 related ObjectReference;"
        "14 reportingComponent; 15 reportingInstance"
    ),
    "events.k8s.io/Event": (
        "1 metadata ObjectMeta; 2 eventTime time; 3 series EventSeries; 4 reportingController;"
        "5 reportingInstance; 6 action; 7 reason; 8 regarding ObjectReference;"
        "9 related ObjectReference; 10 note; 11 type; 12 deprecatedSource EventSource;"
        "13 deprecatedFirstTimestamp time; 14 deprecatedLastTimestamp time; 15 deprecatedCount int"
    ),
    # workloads, as far as `kubectl create` fills them
    "ContainerPort": "1 name; 2 hostPort int; 3 containerPort int; 4 protocol; 5 hostIP",
    "EnvVar": "1 name; 2 value",
    "ResourceRequirements": "1 limits quantity{}; 2 requests quantity{}",
    "Container": (
        "1 name; 2 image; 3 command text[]; 4 args text[]; 5 workingDir; 6 ports ContainerPort[];"
        "7 env EnvVar[]; 8 resources ResourceRequirements; 13 terminationMessagePath;"
        "14 imagePullPolicy; 16 stdin bool; 17 stdinOnce bool; 18 tty bool; 20 terminationMessagePolicy"
    ),
    "Toleration": "1 key; 2 operator; 3 value; 4 effect; 5 tolerationSeconds int?",
    "SchedulingGate": "1 name",
    "PodSecurityContext": "",
    "PodSpec": (
        "2 containers Container[]; 3 restartPolicy; 4 terminationGracePeriodSeconds int?;"
        "5 activeDeadlineSeconds int?; 6 dnsPolicy; 7 nodeSelector text{}; 8 serviceAccountName;"
        "9 serviceAccount; 10 nodeName; 11 hostNetwork bool; 12 hostPID bool; 13 hostIPC bool;"
        "14 securityContext PodSecurityContext; 15 imagePullSecrets LocalObjectReference[];"
        "16 hostname; 17 subdomain; 19 schedulerName; 20 initContainers Container[];"
        "21 automountServiceAccountToken bool?; 22 tolerations Toleration[]; 24 priorityClassName;"
        "25 priority int?; 29 runtimeClassName; 30 enableServiceLinks bool?; 31 preemptionPolicy;"
        "38 schedulingGates SchedulingGate[]"
    ),
    "PodTemplateSpec": "1 metadata ObjectMeta; 2 spec PodSpec",
    "Pod": "1 metadata ObjectMeta; 2 spec PodSpec; 3 status -",
    "RollingUpdate": "1 maxUnavailable port; 2 maxSurge port",
    "DeploymentStrategy": "1 type; 2 rollingUpdate RollingUpdate",
    "DeploymentSpec": (
        "1 replicas int?; 2 selector LabelSelector; 3 template PodTemplateSpec;"
        "4 strategy DeploymentStrategy; 5 minReadySeconds int; 6 revisionHistoryLimit int?;"
        "7 paused bool; 9 progressDeadlineSeconds int?"
    ),
    "Deployment": "1 metadata ObjectMeta; 2 spec DeploymentSpec; 3 status -",
    "JobSpec": (
        "1 parallelism int?; 2 completions int?; 3 activeDeadlineSeconds int?; 4 selector LabelSelector;"
        "5 manualSelector bool?; 6 template PodTemplateSpec; 7 backoffLimit int?;"
        "8 ttlSecondsAfterFinished int?; 9 completionMode; 10 suspend bool?; 14 podReplacementPolicy"
    ),
    "Job": "1 metadata ObjectMeta; 2 spec JobSpec; 3 status -",
    "JobTemplateSpec": "1 metadata ObjectMeta; 2 spec JobSpec",
    "CronJobSpec": (
        "1 schedule; 2 startingDeadlineSeconds int?; 3 concurrencyPolicy; 4 suspend bool?;"
        "5 jobTemplate JobTemplateSpec; 6 successfulJobsHistoryLimit int?;"
        "7 failedJobsHistoryLimit int?; 8 timeZone"
    ),
    "CronJob": "1 metadata ObjectMeta; 2 spec CronJobSpec; 3 status -",
    "ServicePort": "1 name; 2 protocol; 3 port int; 4 targetPort port; 5 nodePort int; 6 appProtocol",
    "ServiceSpec": (
        "1 ports ServicePort[]; 2 selector text{}; 3 clusterIP; 4 type; 5 externalIPs text[];"
        "7 sessionAffinity; 8 loadBalancerIP; 10 externalName"
    ),
    "Service": "1 metadata ObjectMeta; 2 spec ServiceSpec; 3 status -",
    "DisruptionBudgetSpec": "1 minAvailable port?; 2 selector LabelSelector; 3 maxUnavailable port?; 4 unhealthyPodEvictionPolicy",
    "PodDisruptionBudget": "1 metadata ObjectMeta; 2 spec DisruptionBudgetSpec; 3 status -",
    "ResourceQuotaSpec": "1 hard quantity{}; 2 scopes text[]",
    "ResourceQuota": "1 metadata ObjectMeta; 2 spec ResourceQuotaSpec; 3 status -",
    # building blocks
    "TypeMeta": "1 apiVersion; 2 kind",
    "Time": "1 seconds int; 2 nanos int",
    "Quantity": "1 text",
    "IntOrString": "1 type int; 2 number int; 3 text",
}


def _parse(text: str) -> dict[int, tuple[str, str]]:
    fields = {}
    for part in filter(None, (field.strip() for field in text.split(";"))):
        number, name, *kind = part.split()
        fields[int(number)] = (name, kind[0] if kind else "text")
    return fields


MESSAGES = {name: _parse(text) for name, text in TEXT.items()}
