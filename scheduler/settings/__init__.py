"""Settings of a shard's scheduler, read from its objects; the kinds it watches."""
