"""The pods that workload controllers would create, so that `kaiweb group` can show groups before anything runs."""
