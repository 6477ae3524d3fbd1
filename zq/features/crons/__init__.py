"""Cron: expressions and their times in a time zone, groups and entries, and their commands."""
