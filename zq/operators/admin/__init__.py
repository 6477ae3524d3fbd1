"""The admin listener: backups, compactions, and the live lists of `zq top`."""
