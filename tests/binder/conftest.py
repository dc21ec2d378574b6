"""The servers that steps of the binder are tried against."""

from tests.real_cluster.fixture import real_cluster

__all__ = ["real_cluster"]
