"""The rules of the scheduler, one file each; `table.py` lists them."""
