"""A write to a queue, step by step: read, judge, note, patch, look again."""
