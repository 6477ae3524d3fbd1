"""The store in one SQLite file: schema, statements, connections, flush, recovery, upkeep."""
