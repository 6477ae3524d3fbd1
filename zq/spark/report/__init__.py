"""A page about the history: figures from gold, drawn and put into one HTML file."""
