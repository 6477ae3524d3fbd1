"""The engine in the caller's own process: a queue without a server."""
