"""One grouping rule per kind of workload, a file per family; families do not know each other."""
