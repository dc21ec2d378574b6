"""Demand and quotas: queues, pod groups, the mirror, grouping, admission, live topics."""
