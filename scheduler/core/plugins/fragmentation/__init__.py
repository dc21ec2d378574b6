"""The placement strategy `fragmentation`: keep devices usable for the typical mix of tasks."""
