"""The controllers of a kube-controller-manager that the sandbox needs."""
