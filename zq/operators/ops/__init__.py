"""Health, version, status and metrics."""
