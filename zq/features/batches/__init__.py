"""Batches: new jobs fold into a waiting one, by jq programs that came with it."""
