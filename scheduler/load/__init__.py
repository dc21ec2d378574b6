"""Kubernetes objects become the input of the core, and nothing else does.

In the order of reading:

1. `build` makes the snapshot of a cycle and calls the rest; `changes` finds what it has to convert again.
2. The kinds that every cluster has: `nodes`, `queues`, `podgroups` with `run_times`, and `pods`, kept and sorted by
   `pod_table`. Pods and nodes share `requests` (amounts) and `terms` (selectors, affinities, taints).
3. Bindings under way: `bind_requests`, and `bind_memory` for those that failed.
4. What not every cluster has: `volumes`, `disruptions`, and devices: `slices` (what drivers publish), `taint_rules`,
   `claims`, `extended` (claims for extended resources); `selectors` evaluates their CEL, with `cel_functions`.
5. What is not an object of the cluster: `usage` (history of queues) and `past_requests` (of tasks that are gone).
6. `archive` writes all of it to a file and reads it back.
"""
