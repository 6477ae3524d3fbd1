"""The archive: completed jobs that come back, and expired ones that go by a schedule."""
