"""What pods ask for and hold, and why a workload waits, for scheduler, controllers and mirror alike."""
