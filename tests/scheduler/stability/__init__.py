"""Small clusters from public reports of eviction loops, lived through for many cycles."""
