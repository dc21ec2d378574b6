"""Tests of the utilisation of GPUs."""
