"""Turn watch events into rows: the only writer of mirror rows."""
