"""Tools about the binder for developers and operators."""
