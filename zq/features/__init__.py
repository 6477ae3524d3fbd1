"""The features: what users call by a name of its own, each in a room with all of it."""
