"""Tests of scheduler.bench."""
