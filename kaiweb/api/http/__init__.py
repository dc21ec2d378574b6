"""How REST reads parameters and bodies, pages through lists and renders answers."""
