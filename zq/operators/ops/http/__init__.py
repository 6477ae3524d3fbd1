"""The endpoints for operators: health, version, metrics."""
