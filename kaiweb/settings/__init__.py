"""Settings of the Django project: everything in `base`, the other modules only override."""
