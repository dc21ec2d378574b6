"""The four patch types of the Kubernetes API; each is a function from (live object, patch) to a new object."""
