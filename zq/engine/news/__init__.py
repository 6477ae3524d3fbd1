"""The parts of memory that learn from each commit, and those who are told of it."""
