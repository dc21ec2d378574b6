"""Grouping of manifest files without a cluster, by the rules of the controller."""
