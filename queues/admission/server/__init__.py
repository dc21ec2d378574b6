"""The HTTPS server of the webhooks, and Django views for installations where a proxy terminates TLS."""
