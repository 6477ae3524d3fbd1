"""Devices: servers that forward their jobs to this one, as they report themselves."""
