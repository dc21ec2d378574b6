"""Identities of CI pipelines: an ID token of the CI system is exchanged for an API token that ends soon."""
