"""One command that starts, watches and stops every process of a kaiweb installation."""
