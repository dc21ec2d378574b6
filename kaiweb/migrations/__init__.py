"""Tables of the REST API itself."""
