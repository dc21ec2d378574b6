"""Controllers that keep the status of our objects true: pod groups, queues, and pods that call for nodes."""
