"""Targets of a queue: other queues that get each of its new jobs."""
