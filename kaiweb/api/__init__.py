"""REST API version 1: thin views over the packages below, one error format, one cursor format."""
