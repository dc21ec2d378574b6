"""The embedded Kubernetes API server: a simulator for development and tests, not a product API server."""
