"""The verbs of the core: jobs, work, queues, the server. `zq.services` has all services."""
