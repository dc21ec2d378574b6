"""Creating, changing and deleting objects, and what happens to their dependents."""
