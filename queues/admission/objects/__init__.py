"""Rules about queues, pod groups and topologies."""
