"""Lists as `kubectl get` prints them."""
