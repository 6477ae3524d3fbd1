"""Budgets: limits on how many jobs run at once, or in a time, across queues."""
