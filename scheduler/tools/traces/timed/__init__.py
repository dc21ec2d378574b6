"""Traces with arrival times and durations, played in virtual time."""
