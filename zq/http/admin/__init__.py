"""What operators use: it listens on an address of its own."""
