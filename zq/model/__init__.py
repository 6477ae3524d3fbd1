"""The values and the pure rules of the queue. Nothing here does I/O or imports the rest of zq."""
