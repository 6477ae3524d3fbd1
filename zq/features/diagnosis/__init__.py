"""Diagnosis: what is wrong with the server and its queues, the worst first."""
