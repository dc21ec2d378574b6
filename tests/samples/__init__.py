"""The sample manifests of the field, each with an equivalent of our own, on a whole running installation."""
