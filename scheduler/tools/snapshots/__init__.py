"""Saved cycles: without the names of people and teams, reduced to what matters, as a scenario, as the start of a simulation."""
