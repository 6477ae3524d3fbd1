"""The API's contract as tests: one promise each, run for every wire a client may speak."""
