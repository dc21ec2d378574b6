"""Carrying out bind requests."""
