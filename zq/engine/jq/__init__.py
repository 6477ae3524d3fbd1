"""jq programs over payloads, in processes of their own."""
