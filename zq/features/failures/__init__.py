"""Failures by their causes: which have the same one, and how often each has come."""
