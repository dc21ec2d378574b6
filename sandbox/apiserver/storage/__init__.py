"""Objects in memory, on disk and in the log that watches read."""
