"""From a pod to the pod group in the cluster: owners, rule, lookups, writes."""
