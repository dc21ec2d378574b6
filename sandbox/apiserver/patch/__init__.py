"""The four patch types of the Kubernetes API, each a function from (live object, patch) to a new object."""
