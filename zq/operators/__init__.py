"""What operators look at: the page, the admin listener, health and metrics."""
