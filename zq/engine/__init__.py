"""The running server: the loop that all commands pass through. It knows no HTTP."""
