"""`zq top`: shows on a terminal what a server's jobs are doing."""
