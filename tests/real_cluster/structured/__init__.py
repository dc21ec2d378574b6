"""Kubernetes' own structured allocator as a program that answers questions."""
