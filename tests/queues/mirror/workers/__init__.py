"""Workers of the mirror as processes on PostgreSQL, fed from a random history of a cluster, killed and started again."""
