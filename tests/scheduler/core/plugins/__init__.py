"""Tests of single plugins."""
