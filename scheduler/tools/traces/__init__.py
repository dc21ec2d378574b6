"""Play traces of real clusters through the scheduling core, and measure how well it packs them."""
