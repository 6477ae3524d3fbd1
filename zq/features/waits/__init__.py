"""Waits: why a job or a queue waits, and what comes next."""
