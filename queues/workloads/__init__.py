"""What pods request and hold, and why a workload waits; for scheduler, controllers and mirror."""
