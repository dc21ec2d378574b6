"""The embedded cluster: a simulator of the Kubernetes API, nodes, kubelets and workloads. Not a product API server."""
