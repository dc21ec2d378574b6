"""Simulated nodes and the kubelets that run pods on them."""
