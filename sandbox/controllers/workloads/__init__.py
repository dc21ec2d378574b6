"""Simulated workload controllers: they make the pods of Jobs, Deployments and the like, and count them.

What kube-controller-manager does in a real cluster, good enough for scheduling: the right number of
pods with the right names, labels and owner references, replaced when lost, and a status that people
and tools can read. One file per kind, each a pure function from what is there to what to write.
"""
