"""What only a real API server judges: a static volume, and a device of dynamic resource allocation."""

from __future__ import annotations

VOLUME = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: by-hand}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: shelf}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: by-hand
  local: {path: /data}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [a100-2]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: books, namespace: kai-test}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: by-hand
  resources: {requests: {storage: 5Gi}}
---
apiVersion: v1
kind: Pod
metadata:
  name: reader
  namespace: kai-test
  labels: {kai.scheduler/queue: speech}
spec:
  schedulerName: kai-scheduler
  containers:
  - name: main
    image: example.test/x:1
    resources: {limits: {nvidia.com/gpu: "1"}}
    volumeMounts: [{name: books, mountPath: /books}]
  volumes: [{name: books, persistentVolumeClaim: {claimName: books}}]
"""

DEVICE = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: lens}
spec:
  selectors: [{cel: {expression: device.driver == "optics.example.test"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a100-3-optics}
spec:
  driver: optics.example.test
  nodeName: a100-3
  pool: {name: a100-3, generation: 1, resourceSliceCount: 1}
  devices: [{name: lens-0}, {name: lens-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one-lens, namespace: kai-test}
spec:
  devices:
    requests: [{name: lens, exactly: {deviceClassName: lens}}]
---
apiVersion: v1
kind: Pod
metadata:
  name: viewer
  namespace: kai-test
  labels: {kai.scheduler/queue: speech}
spec:
  schedulerName: kai-scheduler
  containers:
  - name: main
    image: example.test/x:1
    resources: {claims: [{name: lens}]}
  resourceClaims: [{name: lens, resourceClaimName: one-lens}]
"""


def _pod(name: str, *, on: str = "", annotations: str = "", spec: str = "", main: str = "") -> str:
    """Return a pod in namespace `devices`.

    Parameters
    ----------
    annotations, spec, main : YAML for these parts of the pod; `main` for its container
    """
    node = f"  nodeSelector: {{kubernetes.io/hostname: {on}}}\n" if on else ""
    return (
        f"---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: devices\n"
        f"  labels: {{kai.scheduler/queue: default-queue}}\n  annotations: {{{annotations}}}\n"
        f"spec:\n  schedulerName: kai-scheduler\n{node}{spec}"
        f"  containers: [{{name: main, image: 'example.test/x:1'{main}}}]\n"
    )


_CLAIMING = ", resources: {claims: [{name: card}]}"
_COMMON = "  resourceClaims: [{name: card, resourceClaimName: common}]\n"
_EACH = "  resourceClaims: [{name: card, resourceClaimTemplateName: each}]\n"
_SCRATCH = "  volumes: [{name: scratch, persistentVolumeClaim: {claimName: scratch}}]\n"

#: One pod of every kind of device, and what their claims need.
DEVICE_KINDS = (
    """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: t4-2-cards}
spec:
  driver: cards.example.test
  nodeName: t4-2
  pool: {name: t4-2, generation: 1, resourceSliceCount: 1}
  devices: [{name: card-0}, {name: card-1}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: card}
spec:
  selectors: [{cel: {expression: device.driver == "cards.example.test"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: common, namespace: devices}
spec:
  devices:
    requests: [{name: card, exactly: {deviceClassName: card}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: each, namespace: devices}
spec:
  spec:
    devices:
      requests: [{name: card, exactly: {deviceClassName: card}}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: made-on-demand}
provisioner: simulated.kaiweb.dev
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: scratch, namespace: devices}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: made-on-demand
  resources: {requests: {storage: 1Gi}}
"""
    + _pod("memory", on="t4-1", annotations='gpu-memory: "8000"')
    + _pod("pair", on="t4-1", annotations='gpu-fraction: "0.5", gpu-fraction-num-devices: "2"')
    + _pod("slice", main=", resources: {limits: {nvidia.com/mig-1g.5gb: 1}}")
    + _pod("templated", spec=_EACH, main=_CLAIMING)
    + _pod("sharer-a", spec=_COMMON, main=_CLAIMING)
    + _pod("sharer-b", spec=_COMMON, main=_CLAIMING)
    + _pod("writer", spec=_SCRATCH, main=", resources: {limits: {nvidia.com/gpu: 1}}")
)
