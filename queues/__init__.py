"""Queues and pod groups: rules of the tree, mirror, grouping, controllers, admission."""
