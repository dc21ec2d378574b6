"""Notifications: what happened is collected for each webhook, and delivered with retries."""
