"""Verbs of the API, declared: what they are, and the parameters and refusals that they share."""
