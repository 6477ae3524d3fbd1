"""The admin listener and its API."""
