"""The API's contract as tests: one promise each, for every wire that a client may use."""
