"""The real lane: kube-apiserver and etcd, built from their Go modules, as the oracle of our sandbox."""
