"""History: one record for each attempt, for readers that follow it."""
