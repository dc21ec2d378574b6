"""Admission webhooks: validate pods, queues, pod groups and topologies, and add to pods what sharing a GPU needs."""
