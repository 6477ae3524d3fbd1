"""The Python library against real servers."""
