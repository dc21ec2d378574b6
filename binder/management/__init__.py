"""Management commands of the package `binder`."""
