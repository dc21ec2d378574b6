"""What the server does of its own accord to the built-in kinds: defaults, status, checks, immutability."""
