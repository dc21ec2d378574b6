"""Settings of a shard's scheduler, read from its SchedulingShard and the Config, and the kinds it watches."""
