"""`zq top`: shows the jobs of a server on a terminal as they change."""
