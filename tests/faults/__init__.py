"""Faults under load on a whole installation: `make faults` (docs/operations/faults.md)."""
