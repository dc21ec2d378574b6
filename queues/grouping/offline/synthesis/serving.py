"""What controllers would create for serving platforms, pipelines, workspaces, virtual machines and unknown kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from kube.values.numbers import int_or_none
from queues.grouping.base import (
    Json,
    annotations_of,
    dig,
    dig_list,
    dig_map,
    dig_text,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from queues.grouping.offline.synthesis.builtin import deployment_of, replica_set_pods
from queues.grouping.offline.synthesis.pods import (
    capped,
    numbered_pods,
    object_of,
    pod_of,
    replicas_of,
    scheduler_template,
    stable_suffix,
    template_of,
)

SERVING = "serving.knative.dev/"
MAX_STEPS = 200


def knative_objects(service: Json) -> list[Json]:
    """Return Configuration, Revision, Deployment, ReplicaSet and the pods of the minimum scale."""
    template, name = template_of(service), name_of(service)
    configuration = object_of("serving.knative.dev/v1", "Configuration", name, service)
    revision_name = f"{name}-00001"
    labels = {
        **dig_map(template, "metadata", "labels"),
        f"{SERVING}service": name,
        f"{SERVING}revision": revision_name,
    }
    annotations = dig_map(template, "metadata", "annotations")
    revision = object_of(
        "serving.knative.dev/v1",
        "Revision",
        revision_name,
        configuration,
        labels=labels,
        annotations=annotations,
        spec=dig_map(template, "spec"),
    )
    scale = annotations.get("autoscaling.knative.dev/min-scale", "1")
    pod_template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": dig_map(template, "spec"),
    }
    count = (int_or_none(scale, smallest=0) if isinstance(scale, str) else None) or 1
    deployment = object_of("apps/v1", "Deployment", f"{revision_name}-deployment", revision)
    replica_set = object_of(
        "apps/v1",
        "ReplicaSet",
        f"{revision_name}-deployment-{stable_suffix(10, uid_of(service))}",
        deployment,
        spec={"replicas": count, "template": pod_template},
    )
    return [configuration, revision, deployment, replica_set, *replica_set_pods(replica_set)]


def seldon_objects(seldon: Json) -> list[Json]:
    objects: list[Json] = []
    for predictor in dig_list(seldon, "spec", "predictors"):
        specs = dig_list(predictor, "componentSpecs") or [{}]
        name = f"{name_of(seldon)}-{dig_text(predictor, 'name')}"
        for index, component in enumerate(specs):
            template = {
                "metadata": dig_map(component, "metadata"),
                "spec": dig_map(component, "spec"),
            }
            replicas = replicas_of(predictor, "replicas")
            objects += deployment_of(f"{name}-{index}", seldon, template, replicas)
    return objects


def inference_service_objects(service: Json) -> list[Json]:
    predictor = dig_map(service, "spec", "predictor")
    fields = ("schedulerName", "containers", "tolerations", "nodeSelector")
    spec = {key: predictor[key] for key in fields if key in predictor}
    count = replicas_of(predictor, "minReplicas")
    template = {"metadata": {"labels": dig_map(predictor, "labels")}, "spec": spec}
    return deployment_of(f"{name_of(service)}-predictor", service, template, count)


def dynamo_objects(graph: Json) -> list[Json]:
    objects: list[Json] = []
    for name, service in dig_map(graph, "spec", "services").items():
        scheduler = dig_text(service, "extraPodSpec", "schedulerName")
        template = scheduler_template(scheduler)
        replicas = replicas_of(service, "replicas")
        objects += deployment_of(f"{name_of(graph)}-{name.lower()}", graph, template, replicas)
    return objects


def workflow_pods(workflow: Json) -> list[Json]:
    """Return one pod per container step reached from the entrypoint."""
    templates = {dig_text(t, "name"): t for t in dig_list(workflow, "spec", "templates")}
    leaves: list[Json] = []
    _collect_steps(dig_text(workflow, "spec", "entrypoint"), templates, leaves, ())
    pods = []
    for index, template in enumerate(leaves):
        spec = {"containers": [dig_map(template, "container") or dig_map(template, "script")]}
        scheduler = dig_text(template, "schedulerName") or dig_text(
            workflow, "spec", "schedulerName"
        )
        pods.append(
            pod_of(
                f"{name_of(workflow)}-{dig_text(template, 'name')}-{stable_suffix(10, uid_of(workflow), str(index))}",
                workflow,
                {"metadata": dig_map(template, "metadata"), **scheduler_template(scheduler, spec)},
                labels={"workflows.argoproj.io/workflow": name_of(workflow)},
            )
        )
    return pods


def scheduled_workflow_objects(scheduled_workflow: Json) -> list[Json]:
    """Return the first run: an Argo Workflow and its pods; nothing if the object does not contain the spec of a Workflow."""
    spec = _workflow_spec(dig(scheduled_workflow, "spec", "workflow", "spec"))
    if not spec:
        return []
    workflow = object_of(
        "argoproj.io/v1alpha1",
        "Workflow",
        f"{name_of(scheduled_workflow)}-1",
        scheduled_workflow,
        spec=spec,
    )
    pods = workflow_pods(workflow)
    return [workflow, *pods] if pods else []


def _workflow_spec(value: object) -> Json:
    """Return the spec of the workflow, which Kubeflow Pipelines writes as an object or as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _collect_steps(
    name: str, templates: dict[str, Json], leaves: list[Json], path: Sequence[str]
) -> None:
    """Append the templates without steps of their own that are reached from one template.

    The path holds the names of the templates on the way to it, which ends a loop.
    """
    template = templates.get(name)
    if template is None or name in path or len(leaves) >= MAX_STEPS:
        return
    nested = [
        s
        for group in dig_list(template, "steps")
        for s in (group if isinstance(group, list) else [group])
    ]
    nested += dig_list(template, "dag", "tasks")
    if not nested:
        leaves.append(template)
    for step in nested:
        _collect_steps(dig_text(step, "template"), templates, leaves, (*path, name))


def task_run_pods(task_run: Json) -> list[Json]:
    scheduler = dig_text(task_run, "spec", "podTemplate", "schedulerName")
    labels = {"tekton.dev/taskRun": name_of(task_run)}
    return [
        pod_of(f"{name_of(task_run)}-pod", task_run, scheduler_template(scheduler), labels=labels)
    ]


def pipeline_run_objects(run: Json) -> list[Json]:
    template = dig_map(run, "spec", "taskRunTemplate", "podTemplate") or dig_map(
        run, "spec", "podTemplate"
    )
    tasks = dig_list(run, "spec", "pipelineSpec", "tasks") or [{"name": "task"}]
    objects: list[Json] = []
    for task in tasks:
        name = f"{name_of(run)}-{dig_text(task, 'name')}"
        task_run = object_of("tekton.dev/v1", "TaskRun", name, run, spec={"podTemplate": template})
        objects += [task_run, *task_run_pods(task_run)]
    return objects


def virtual_machine_objects(machine: Json) -> list[Json]:
    """Return the instance that runs while the machine is on, and its pod."""
    template = template_of(machine)
    instance = object_of(
        "kubevirt.io/v1",
        "VirtualMachineInstance",
        name_of(machine),
        machine,
        labels=dig_map(template, "metadata", "labels"),
        annotations=dig_map(template, "metadata", "annotations"),
        spec=dig_map(template, "spec"),
    )
    return [instance, *machine_pods(instance)]


def machine_pods(machine: Json) -> list[Json]:
    template = scheduler_template(dig_text(machine, "spec", "schedulerName"))
    name = f"virt-launcher-{name_of(machine)}-{stable_suffix(5, uid_of(machine))}"
    return [pod_of(name, machine, template, labels={"kubevirt.io": "virt-launcher"})]


def dev_workspace_objects(workspace: Json) -> list[Json]:
    overrides = dig_map(workspace, "spec", "template", "attributes", "pod-overrides")
    return deployment_of(name_of(workspace), workspace, {"spec": dig_map(overrides, "spec")}, 1)


def pod_clique_objects(clique_set: Json, gangs: Sequence[Json]) -> list[Json]:
    """Return a PodClique and its pods for each group of the PodGangs.

    Without PodGangs among the files, one per replica is created and returned too.
    """
    objects: list[Json] = []
    if not gangs:
        gangs = [_gang(clique_set, i) for i in range(replicas_of(clique_set, "spec", "replicas"))]
        objects += gangs
    templates = {
        dig_text(clique, "name"): clique
        for clique in dig_list(clique_set, "spec", "template", "cliques")
    }
    for gang in gangs:
        for group in dig_list(gang, "spec", "podgroups"):
            name = dig_text(group, "name")
            spec = {"spec": dig_map(templates.get(name, {}), "spec", "podSpec")}
            clique = object_of(
                "grove.io/v1alpha1", "PodClique", f"{name_of(gang)}-{name}", clique_set
            )
            objects.append(clique)
            objects += [
                pod_of(
                    dig_text(reference, "name"),
                    clique,
                    spec,
                    labels={"grove.io/podgang": name_of(gang)},
                )
                for reference in dig_list(group, "podReferences")
            ]
    return objects


def _gang(clique_set: Json, index: int) -> Json:
    name, namespace = f"{name_of(clique_set)}-{index}", namespace_of(clique_set)
    groups = []
    for clique in dig_list(clique_set, "spec", "template", "cliques"):
        replicas = replicas_of(clique, "spec", "replicas")
        clique_name = dig_text(clique, "name")
        references = [
            {"namespace": namespace, "name": f"{name}-{clique_name}-{i}"}
            for i in range(capped(replicas))
        ]
        min_replicas = replicas_of(clique, "spec", "minAvailable", default=replicas)
        groups.append(
            {"name": clique_name, "minReplicas": min_replicas, "podReferences": references}
        )
    return object_of(
        "scheduler.grove.io/v1alpha1", "PodGang", name, clique_set, spec={"podgroups": groups}
    )


def spot_request_pods(request: Json) -> list[Json]:
    return numbered_pods(request, template_of(request), replicas_of(request, "spec", "replicas"))


def app_wrapper_objects(wrapper: Json, make_children: Callable[[Json], list[Json]]) -> list[Json]:
    """Return the wrapped objects, owned by the wrapper, each with what its own controller would create."""
    objects: list[Json] = []
    for component in dig_list(wrapper, "spec", "components"):
        inner = dig_map(component, "template")
        api_version, kind = dig_text(inner, "apiVersion"), dig_text(inner, "kind")
        if not api_version or not kind:
            continue
        name = name_of(inner) or name_of(wrapper)
        child = object_of(
            api_version,
            kind,
            name,
            wrapper,
            labels=labels_of(inner),
            annotations=annotations_of(inner),
        )
        child = {**inner, **child}
        objects += [child, *([] if kind == "Pod" else make_children(child))]
    return objects


def unknown_kind_pods(workload: Json) -> list[Json]:
    """Return the pods of an unknown kind, if it has a pod template at `spec.template`."""
    template = template_of(workload)
    if not isinstance(dig(template, "spec", "containers"), list):
        return []
    return numbered_pods(workload, template, replicas_of(workload, "spec", "replicas"))
