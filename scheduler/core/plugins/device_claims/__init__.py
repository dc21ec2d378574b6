"""Dynamic resource allocation in the core: claims, devices, and the pods that share them."""
