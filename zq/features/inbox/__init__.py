"""Jobs that others write into the table `inbox` of zq's own database, in their transactions."""
