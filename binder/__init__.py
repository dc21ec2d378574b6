"""Carries out placement decisions (BindRequests)."""
