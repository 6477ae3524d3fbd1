"""zq in the frameworks of other people. Each part needs its framework, and nothing else does."""
