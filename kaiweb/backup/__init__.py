"""Save what only the database holds, and load it into another one: users, rights, audit, change sets, history."""
