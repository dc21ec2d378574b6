"""Requests that stay open: waiting and event streams, as ASGI applications around Django, with their views."""
