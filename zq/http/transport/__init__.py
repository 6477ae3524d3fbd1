"""Connections, versions of HTTP, TLS, limits and time-outs. It knows no routes."""
