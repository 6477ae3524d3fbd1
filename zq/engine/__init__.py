"""When it happens: the loop that everything passes through. It knows no HTTP."""
