"""Trends: what happened in queues, and to types of jobs, minute by minute."""
