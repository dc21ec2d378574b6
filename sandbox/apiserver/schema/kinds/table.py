"""The strategy of each built-in kind; kinds that are not listed need no rules of their own."""

from __future__ import annotations

from sandbox.apiserver.schema.kinds import gangs, leases, platform, pods, workloads
from sandbox.apiserver.schema.kinds.base import Strategy

_PLAIN = Strategy()
_COUNTED = Strategy(has_generation=True)

STRATEGIES: dict[str, Strategy] = {
    "pods": Strategy(
        defaults=pods.default_pod,
        prepare=pods.prepare_pod,
        validate=pods.validate_pod,
        validate_update=pods.validate_pod_update,
        status={},
        has_generation=True,
        meta_by_status=True,
    ),
    "nodes": Strategy(meta_by_status=True),
    "namespaces": Strategy(
        defaults=platform.default_namespace,
        prepare=platform.prepare_namespace,
        status={},
        name_rule="label",
    ),
    "services": Strategy(
        creates_on_update=True,
        defaults=platform.default_service,
        prepare=platform.prepare_service,
        validate=platform.validate_service,
        status={},
        name_rule="service",
    ),
    "secrets": Strategy(
        defaults=platform.default_secret, validate_update=platform.validate_immutable_data
    ),
    "configmaps": Strategy(validate_update=platform.validate_immutable_data),
    "persistentvolumeclaims": Strategy(
        defaults=platform.default_volume_claim, status={"phase": "Pending"}
    ),
    "persistentvolumes": Strategy(defaults=platform.default_volume, status={"phase": "Pending"}),
    "replicationcontrollers": Strategy(status={"replicas": 0}, has_generation=True),
    "deployments.apps": Strategy(
        defaults=workloads.default_deployment,
        validate=workloads.validate_selector_and_template,
        validate_update=workloads.validate_selector_update,
        status={},
        has_generation=True,
    ),
    "replicasets.apps": Strategy(
        defaults=workloads.default_replica_set,
        validate=workloads.validate_selector_and_template,
        validate_update=workloads.validate_selector_update,
        status={"replicas": 0},
        has_generation=True,
    ),
    "statefulsets.apps": Strategy(
        defaults=workloads.default_stateful_set,
        validate=workloads.validate_selector_and_template,
        validate_update=workloads.validate_stateful_set_update,
        status={"replicas": 0, "availableReplicas": 0},
        has_generation=True,
    ),
    "daemonsets.apps": Strategy(
        defaults=workloads.default_daemon_set,
        prepare=workloads.prepare_daemon_set,
        validate=workloads.validate_selector_and_template,
        validate_update=workloads.validate_selector_update,
        status={
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
        has_generation=True,
    ),
    "jobs.batch": Strategy(
        defaults=workloads.default_job,
        prepare=workloads.prepare_job,
        validate=workloads.validate_job,
        validate_update=workloads.validate_job_update,
        status={},
        has_generation=True,
    ),
    "cronjobs.batch": Strategy(
        defaults=workloads.default_cron_job,
        validate=workloads.validate_cron_job,
        status={},
        has_generation=True,
    ),
    "priorityclasses.scheduling.k8s.io": Strategy(
        defaults=platform.default_priority_class,
        validate=platform.validate_priority_class,
        validate_update=platform.validate_priority_class_update,
        has_generation=True,
    ),
    "workloads.scheduling.k8s.io": Strategy(
        validate=gangs.validate_workload, validate_update=gangs.validate_workload_update
    ),
    "storageclasses.storage.k8s.io": Strategy(
        defaults=platform.default_storage_class, validate=platform.validate_storage_class
    ),
    "csidrivers.storage.k8s.io": Strategy(defaults=platform.default_csi_driver),
    "rolebindings.rbac.authorization.k8s.io": Strategy(
        creates_on_update=True,
        defaults=platform.default_role_binding,
        validate_update=platform.validate_role_binding_update,
        name_rule="path",
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": Strategy(
        creates_on_update=True,
        defaults=platform.default_role_binding,
        validate_update=platform.validate_role_binding_update,
        name_rule="path",
    ),
    "roles.rbac.authorization.k8s.io": Strategy(name_rule="path", creates_on_update=True),
    "clusterroles.rbac.authorization.k8s.io": Strategy(name_rule="path", creates_on_update=True),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": Strategy(
        defaults=platform.default_webhooks,
        validate=platform.validate_webhooks,
        has_generation=True,
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": Strategy(
        defaults=platform.default_webhooks,
        validate=platform.validate_webhooks,
        has_generation=True,
    ),
    "resourceclaims.resource.k8s.io": Strategy(
        defaults=platform.default_resource_claim,
        validate_update=platform.validate_resource_claim_update,
        validate_status=platform.validate_resource_claim_status,
        status={},
    ),
    "resourceclaimtemplates.resource.k8s.io": Strategy(
        defaults=platform.default_resource_claim_template,
        validate_update=platform.validate_resource_claim_update,
    ),
    "deviceclasses.resource.k8s.io": _COUNTED,
    "resourceslices.resource.k8s.io": _COUNTED,
    "poddisruptionbudgets.policy": Strategy(
        status={
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
        has_generation=True,
    ),
    "networkpolicies.networking.k8s.io": _COUNTED,
    "ingresses.networking.k8s.io": Strategy(status={"loadBalancer": {}}, has_generation=True),
    "endpointslices.discovery.k8s.io": _COUNTED,
    "customresourcedefinitions.apiextensions.k8s.io": _COUNTED,
    "leases.coordination.k8s.io": Strategy(
        defaults=leases.default_lease,
        validate=leases.validate_lease,
        creates_on_update=True,
    ),
    "runtimeclasses.node.k8s.io": Strategy(creates_on_update=True),
    "limitranges": Strategy(creates_on_update=True),
    "endpoints": Strategy(creates_on_update=True),
    "events": Strategy(name_rule="subdomain", creates_on_update=True),
}


def strategy_of(storage: str) -> Strategy:
    return STRATEGIES.get(storage, _PLAIN)
