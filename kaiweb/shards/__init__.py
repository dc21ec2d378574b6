"""SchedulingShard objects: read, checked and written for REST."""
