"""The webhooks as a running server: the HTTPS port, and Django views where something else ends TLS."""
