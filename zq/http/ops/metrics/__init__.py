"""GET /metrics: what is measured (table), where it comes from (scrape), the endpoint (api)."""
