"""The actions of a cycle; `table.py` lists them."""
