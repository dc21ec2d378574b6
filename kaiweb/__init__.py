"""kaiweb: composition root (settings, urls, processes). Imports every room; no room imports it."""
