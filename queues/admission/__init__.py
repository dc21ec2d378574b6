"""Admission webhooks: validate pods, queues, pod groups and topologies, and complete pods."""
