"""The values that every part of the server shares: resources, stored objects, users, errors."""
