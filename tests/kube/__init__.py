"""The door to Kubernetes: objects, client, watch, store, lease."""
