"""Controllers: status of pod groups and queues, and stand-in pods for cluster autoscalers."""
