"""The pure rules, tested without a loop, a file or a socket."""
