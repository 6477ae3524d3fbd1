"""The operators' page: its files, its sessions, its live view, and the API that it uses."""
