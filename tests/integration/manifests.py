"""What the end-to-end tests apply beside `tests/manifests/example-workloads.yaml`: refused, hopeless and sharing workloads."""

from __future__ import annotations

BAD = {
    "an unparsable manifest": ("kind: Queue\n  broken", "error"),
    "a negative quota": (
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: minus}\n"
        "spec: {resources: {gpu: {quota: -5, limit: -1}, cpu: {quota: -1, limit: -1}, "
        "memory: {quota: -1, limit: -1}}}",
        "quota",
    ),
    "a queue without resources": (
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: hollow}\nspec: {}",
        "resources must be specified",
    ),
}
ORPHAN = (
    "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: lost}\n"
    "spec: {parentQueue: nowhere, resources: {gpu: {quota: 1, limit: -1}, "
    "cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}}}"
)
TIGHT_QUEUE = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: tight}
spec:
  parentQueue: lab
  resources:
    gpu: {quota: 1, limit: 1, overQuotaWeight: 1}
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    memory: {quota: -1, limit: -1, overQuotaWeight: 1}
"""
HALF = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: kai-test
  labels: {{kai.scheduler/queue: speech}}
  annotations: {{gpu-fraction: "0.5"}}
spec:
  schedulerName: kai-scheduler
  containers:
  - {{name: main, image: "example.test/x:1"}}
"""
HOPELESS_GANG = """
apiVersion: batch/v1
kind: Job
metadata:
  name: impossible
  namespace: kai-test
  labels: {kai.scheduler/queue: speech}
  annotations: {kai.scheduler/batch-min-member: "500"}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      schedulerName: kai-scheduler
      restartPolicy: Never
      containers:
      - {name: main, image: example.test/x:1, resources: {limits: {nvidia.com/gpu: "1"}}}
"""


def pod_yaml(name: str, *, queue: str, gpus: int = 1, rank: str = "train") -> str:
    """Return a pod with one container."""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: kai-test\n"
        f"  labels: {{kai.scheduler/queue: {queue}, priorityClassName: {rank}}}\nspec:\n  schedulerName: kai-scheduler\n"
        f"  containers:\n  - name: main\n    image: example.test/x:1\n"
        f'    resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}\n'
    )
