"""The pods that workload controllers would make, so that `kaiweb group` can show groups before anything runs."""
