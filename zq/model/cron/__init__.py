"""Cron: expressions and what they mean in a time zone, groups and entries, commands about them."""
