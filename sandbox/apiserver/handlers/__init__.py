"""The handlers of requests, one file per group of similar requests."""
