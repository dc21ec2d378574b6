"""What a cycle does, in order; `table.py` lists the actions."""
