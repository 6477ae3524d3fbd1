"""What memory learns of each commit, and who is told."""
