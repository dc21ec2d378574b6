"""The chart, the image and what else puts kaiweb into a real cluster."""
