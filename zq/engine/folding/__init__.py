"""Folds new jobs into the hosts of their batches: jq decides, and the tick gets plans."""
