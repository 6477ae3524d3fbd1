"""The verbs of the core: jobs, work, queues, the server. `zq.service.services` has all services."""
