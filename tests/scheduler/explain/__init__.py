"""The words people read."""
