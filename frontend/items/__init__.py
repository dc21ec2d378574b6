"""The rows people see: one shape for REST answers and live frames, built from the mirror."""
