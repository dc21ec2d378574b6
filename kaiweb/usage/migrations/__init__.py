"""Migrations of the usage tables."""
