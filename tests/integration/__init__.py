"""The whole road, with real processes: sandbox, broker, workers, web."""
