"""The embedded cluster: a Kubernetes API server, simulated nodes and workload controllers. Not for production."""
