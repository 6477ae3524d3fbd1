"""Devices: servers that forward their jobs to this one, and what is sent back to them."""
