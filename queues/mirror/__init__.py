"""The mirror: turns watch events into database rows. It is the only writer of these rows."""
