"""Programs that copy what waits in other queues."""
