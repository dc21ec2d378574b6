"""Programs around the scheduler: conformance, benchmark, simulation, replay and the cluster check."""
