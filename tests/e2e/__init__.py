"""A whole installation on a real kube-apiserver and etcd, RBAC on."""
