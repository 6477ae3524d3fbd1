"""Jobs that others write into the inbox of zq's own database."""
