"""Management commands of the package `kaiweb`."""
