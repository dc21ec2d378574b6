"""The program inside a reservation pod: tell the cluster which GPU the pod got, and hold it."""
