"""NUMA zones: which nodes can align a task under their Topology Manager policy, and what it takes where."""
