"""What every request passes before Django sees it: the Host header, limits on bodies and on requests at once."""
