"""REST views, one file per noun."""
