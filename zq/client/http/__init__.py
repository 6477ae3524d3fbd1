"""A server at an address: the backend over HTTP, its transports and its streams."""
