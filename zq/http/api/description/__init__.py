"""The description of the API, for machines (`GET /openapi.json`) and people (reference.md)."""
