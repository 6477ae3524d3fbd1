"""Queues that are files: `queues/mail.py` handles the jobs of the queue `mail`."""
