"""Addresses of PostgreSQL that cannot be read, of which nothing is told: libpq quotes passwords."""

import re

SPLIT = re.compile("[a-z]+://([^@/]*@)?[^@?]*([?].*)?")
"""An address in which libpq finds the whole password: for it, the first @ or / ends that."""

PORTS = re.compile("[0-9,]*")
"""What libpq is to find as the ports. A password is there if nothing names its end."""

UNREADABLE = (
    "the address of the database cannot be read: write % as %25, @ as %40 and / as %2F in its"
    " password, or give that by PGPASSWORD or PGPASSFILE"
)
