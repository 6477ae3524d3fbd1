"""The description of queue-ti's API."""
