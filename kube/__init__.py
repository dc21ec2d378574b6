"""The one door to Kubernetes: typed objects, gateway, watch, store, lease. Knows no Django."""
