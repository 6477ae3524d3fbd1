"""Doors other than the native API: each a dialect over the engine, in a room of its own."""
