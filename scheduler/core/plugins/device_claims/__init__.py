"""Dynamic resource allocation as the scheduler sees it: claims, devices, and who shares them."""
