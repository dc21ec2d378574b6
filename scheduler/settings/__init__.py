"""What a shard's scheduler is told: its objects read into parameters, and the kinds it watches."""
