"""The command `zq`. Each command has its own file, and imports its requirements when it runs."""
