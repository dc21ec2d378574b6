"""The budgets of the dashboard, measured in a real browser on a large installation."""
