"""A real kube-apiserver and etcd, built from their Go modules, to compare the embedded API server with."""
