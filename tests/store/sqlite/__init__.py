"""What is SQLite's own: its file, its schema and plans, its log, its locks, its failures."""
