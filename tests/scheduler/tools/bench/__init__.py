"""Tests of scheduler.tools.bench."""
