"""The parts of memory that learn from each commit, and pass it on to listeners."""
