"""History and usage: who held how many GPUs when, from samples of the mirror."""
