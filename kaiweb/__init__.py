"""kaiweb: the composition root (settings, urls, processes). It imports every package; none imports it."""

#: The version of the whole project; pyproject.toml reads it from here.
__version__ = "0.1.0"
