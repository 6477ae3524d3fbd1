"""The parts of SQLite alone: file, schema, plans, log, locks, failures."""
