"""The door for clients of Zizq: its HTTP API, and zq's additions to it."""
