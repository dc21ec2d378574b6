"""How long the names of Kubernetes are in columns."""

#: Kubernetes allows no longer name.
MAX_NAME = 253
#: Of `namespace/name`.
MAX_KEY = 2 * MAX_NAME + 1
