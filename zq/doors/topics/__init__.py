"""The `/v0` dialect: topics, whose records are log records or jobs."""
