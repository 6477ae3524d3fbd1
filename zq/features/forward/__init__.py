"""Lanes: jobs that leave for another server under numbers, so that each arrives there once."""
