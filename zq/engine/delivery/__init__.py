"""Who gets jobs: streams, their windows, and claims that wait."""
