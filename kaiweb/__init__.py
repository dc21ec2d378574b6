"""kaiweb: composition root (settings, urls, processes). Imports every room; no room imports it."""

#: The version of the whole project; pyproject.toml reads it from here.
__version__ = "0.1.0"
