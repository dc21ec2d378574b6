"""What the server answers, one file per family of requests."""
