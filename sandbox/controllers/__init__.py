"""The controllers of kube-controller-manager that the sandbox needs."""
