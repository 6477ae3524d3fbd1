"""The tick: what one transaction decides, and the naive model that it is held to."""
