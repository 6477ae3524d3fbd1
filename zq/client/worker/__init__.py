"""The worker: takes jobs from a server, executes them, and settles them."""
