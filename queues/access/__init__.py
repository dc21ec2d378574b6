"""Connections, tokens, and the rights of users."""
