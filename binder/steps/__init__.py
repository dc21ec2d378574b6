"""Steps that prepare the binding of a pod, and undo the preparation if the binding fails."""
