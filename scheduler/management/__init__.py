"""Management commands of the scheduler."""
