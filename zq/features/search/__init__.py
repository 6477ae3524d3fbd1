"""Search: jobs found by words in their texts, and what completes a filter."""
