"""Servers that the real client is tried against."""

from tests.fakes.sandbox_server import sandbox
from tests.real_cluster.fixture import real_cluster

__all__ = ["real_cluster", "sandbox"]
