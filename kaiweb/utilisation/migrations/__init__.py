"""Migrations of the utilisation tables."""
