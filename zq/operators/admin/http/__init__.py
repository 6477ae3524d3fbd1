"""The door for operators. It has a listener of its own."""
