"""What we expect of a Kubernetes API server, asked of two: the real kube-apiserver and our sandbox.

The real one is the oracle: a check that fails there is a wrong check. A check that passes there and
fails on the sandbox shows where the simulator drifted.
"""
