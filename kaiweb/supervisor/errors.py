"""Errors that keep an installation from starting."""

from __future__ import annotations


class StartError(Exception):
    """A file or a port of this installation cannot be used; the message names it and the remedy."""
