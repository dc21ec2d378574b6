"""Commands of the binder room, found by Django."""
