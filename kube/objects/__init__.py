"""Typed, frozen views of the Kubernetes objects we read."""
