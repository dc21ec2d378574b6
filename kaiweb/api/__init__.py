"""REST API version 1: thin views over the rooms, one error format, one cursor format."""
