"""Utilisation of GPUs: how busy the devices are that pods hold, from the series of the DCGM exporter."""
