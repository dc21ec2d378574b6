"""Speed: made-up clusters of known outcome, run through the core alone, session and actions timed apart."""
