"""HTTP/2 in front of the same application: frames by the h2 library, requests by aiohttp."""
