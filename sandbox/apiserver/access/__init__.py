"""Who may do what: authentication, RBAC, admission, webhooks and certificates."""
