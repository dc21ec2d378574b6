"""The rules of single built-in kinds: defaults, initial status, checks, immutable fields."""
