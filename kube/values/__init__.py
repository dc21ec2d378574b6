"""Readers and writers of the values in cluster objects; each is bounded in time and space."""
