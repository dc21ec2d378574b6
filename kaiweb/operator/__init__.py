"""What KAI's operator does, for processes instead of Deployments: start what is asked for, say how it stands."""
