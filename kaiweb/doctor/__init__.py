"""Examine a cluster: what keeps kaiweb from working in it, or would after a change from KAI."""
