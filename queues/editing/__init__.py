"""The steps of a write to a queue: read, check, audit, patch, check again."""
