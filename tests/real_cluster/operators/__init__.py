"""Workload operators of others, built from their Go modules and run beside a real control plane."""
