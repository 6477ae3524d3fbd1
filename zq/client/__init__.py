"""The library: clients, tasks, queues by message id, workers. Nothing of the server is imported."""
