"""zq: a persistent job queue for one host."""

__version__ = "0.1.0"
