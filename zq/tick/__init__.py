"""What one transaction decides: every change of a job's state. It knows no driver."""
