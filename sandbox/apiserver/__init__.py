"""The embedded Kubernetes API server, for development, demos and tests. It is not for production."""
