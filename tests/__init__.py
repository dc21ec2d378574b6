"""Tests, in folders named as the packages they test."""
