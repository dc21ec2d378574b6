"""A stream of workloads that keeps the demo cluster busy."""
