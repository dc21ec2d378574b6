"""From pods to pod groups: owner walk, one grouping rule per workload kind, and the write rules."""
