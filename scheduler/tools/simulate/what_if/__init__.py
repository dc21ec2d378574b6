"""What-if: run the scheduling core on a copy of the cluster that was edited, and compare it with the cluster as it is."""
