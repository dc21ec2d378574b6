"""Kubernetes objects become the input of the core, and nothing else does."""
