"""Management commands of the package `queues`."""
