"""Decisions become writes: bind requests, evictions, conditions and events."""
