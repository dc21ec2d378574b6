"""Commands of the queues room, found by Django."""
