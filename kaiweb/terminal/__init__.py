"""The commands `top`, `why`, `queues`, `order` and `doctor`: a terminal client of the REST API, without Django."""
