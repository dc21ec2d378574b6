"""Commands of the composition root."""
