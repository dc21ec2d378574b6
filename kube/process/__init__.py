"""What a long-running process needs: signs of life, back-off, private files, a work queue, bad objects set aside."""
