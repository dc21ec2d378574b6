"""Schema steps, made by `kaiweb makemigrations`."""
