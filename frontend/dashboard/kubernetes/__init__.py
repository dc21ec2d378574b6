"""Log-in with a token of the cluster: the API server says whose it is, and the groups give roles, as with OpenID Connect."""
