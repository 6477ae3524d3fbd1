"""HTTP/2 for the same application: a codec reads the frames, and aiohttp makes the requests."""
