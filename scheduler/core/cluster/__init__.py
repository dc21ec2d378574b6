"""The cluster as arrays: what the snapshot says, and the state a session changes."""
