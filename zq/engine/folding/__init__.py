"""Folding new jobs into the hosts of their batches: what jq says, brought to the tick as plans."""
