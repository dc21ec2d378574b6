"""Queues as plain values, and the rules of the queue tree; pure functions."""
