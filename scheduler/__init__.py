"""Decides which pod runs where: the pure core and the Django app around it."""
