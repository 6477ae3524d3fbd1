"""Backlog: how many jobs of a queue could run now, and how many workers they need."""
