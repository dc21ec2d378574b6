"""Whether the installation does its work: checks, the pages that show them, the probe of one process."""
