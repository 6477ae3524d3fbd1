"""One SQLite file: its schema, its one writer, its readers. Decides nothing about jobs."""
