"""Creating, changing and deleting objects and their dependents."""
