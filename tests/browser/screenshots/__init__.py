"""Pictures of every page, tab and state of the dashboard, for people to judge."""
