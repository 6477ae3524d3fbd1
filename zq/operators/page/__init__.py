"""The operators' page: its files, its sessions and its live views."""
