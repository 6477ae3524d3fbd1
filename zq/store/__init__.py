"""Where jobs lie: what a store can do, and the stores that do it."""
