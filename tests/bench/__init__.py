"""Measurements a person reads; nothing here judges."""
