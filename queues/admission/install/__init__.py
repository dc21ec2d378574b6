"""Certificates of the webhook server and its registration in the cluster."""
