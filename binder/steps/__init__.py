"""What has to be prepared before a pod can be bound, and undone when it cannot."""
