"""The items that REST answers and live frames consist of, one shape for both, built from the mirror."""
