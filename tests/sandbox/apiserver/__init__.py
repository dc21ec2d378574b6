"""The embedded API server, called in process."""
