"""Plan changes of the queues: what-if simulations and change sets."""
