"""Fair share as pure functions: division, gates, reclaim rules, queue order, usage decay."""
