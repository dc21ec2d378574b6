"""All access to Kubernetes: typed objects, gateway, watch, store, lease. Independent of Django."""
