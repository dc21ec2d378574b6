"""Hostile clients against a running installation: `make abuse` (docs/operations/faults.md)."""
