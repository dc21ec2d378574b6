"""Views of one object beyond its item: how its share came about, who may edit it, its manifest, its events."""
