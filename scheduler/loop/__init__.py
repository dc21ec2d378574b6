"""Runs cycles: one worker per shard, woken by changes and by a clock."""
