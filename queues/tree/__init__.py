"""What a queue says and which trees of queues are sound: plain values and pure functions."""
