"""What-if tools: divide a cluster among queues, and watch time-based fairness over many cycles."""
