"""Schemas: what the payloads of a queue must look like before they are stored."""
