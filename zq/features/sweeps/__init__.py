"""Sweeps: changes of many jobs by a filter, slice by slice, with preview and undo."""
