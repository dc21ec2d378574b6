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
