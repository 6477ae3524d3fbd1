"""Producers with a memory: each numbers its jobs, and what it repeats is never stored twice."""
