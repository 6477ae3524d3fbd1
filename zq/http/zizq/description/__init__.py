"""The API described by itself: for machines (`GET /openapi.json`) and for people (reference.md)."""
