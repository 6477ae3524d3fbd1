"""The decisions of one transaction: every change of a job's state. It knows no database driver."""
