"""Management commands of the package `scheduler`."""
