"""The door of the cluster: what pods, queues, pod groups and topologies may say, and what is added to pods."""
