"""From the evidence of a cycle to the words people read."""
