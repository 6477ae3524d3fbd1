"""Delivery of jobs: streams, their windows, and claims that wait."""
