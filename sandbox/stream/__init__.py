"""A stream of workloads that keeps a demo cluster busy."""
