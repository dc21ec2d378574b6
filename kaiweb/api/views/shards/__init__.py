"""Views of shards, their settings and their snapshots."""
