"""Simulated workload controllers: they create the pods of Jobs, Deployments and the like, and count them.

They do the part of kube-controller-manager that matters for scheduling: the right number of pods with the
right names, labels and owner references, new pods for lost ones, and a status that people and tools can
read. There is one file per kind, with a pure function from the current objects to a plan of writes.
"""
