"""Which running tasks must go so that a pod group can run: search, victims, trial, rules."""
