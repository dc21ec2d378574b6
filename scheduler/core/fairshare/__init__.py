"""Fair share as pure functions: division, capacity gates, reclaim rules, past usage."""
