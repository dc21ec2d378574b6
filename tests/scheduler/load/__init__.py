"""Kubernetes objects in, core input out."""
