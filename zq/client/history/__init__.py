"""A server's history, read page by page and exported to files."""
