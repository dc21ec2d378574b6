"""KAI's operator for processes instead of Deployments: decide which run, and write conditions."""
