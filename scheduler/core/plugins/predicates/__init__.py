"""Which nodes may take a task at all, part by part; `plugin.py` puts the parts in order."""
