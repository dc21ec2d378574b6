"""Who may connect, who is logged in by a token, and what they may do."""
