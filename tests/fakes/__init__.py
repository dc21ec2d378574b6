"""In-memory stand-ins for the seams of the system."""
