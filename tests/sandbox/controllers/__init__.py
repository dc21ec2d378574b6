"""Tests of the simulated nodes, kubelets, workload controllers and the workload stream."""
