"""What operators ask: health, version, metrics."""
