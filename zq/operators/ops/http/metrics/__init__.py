"""GET /metrics: the metrics (table), their values (scrape), and the endpoint (api)."""
