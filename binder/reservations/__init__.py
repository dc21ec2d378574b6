"""Reservation pods: each holds a whole GPU so that several other pods can share it."""
