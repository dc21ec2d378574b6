"""The Django app of the page: log-in, log-out, and the shell that loads the TypeScript program."""
