"""`zq relay` with small limits, so that a backlog of a moment takes many requests and readings."""

from zq.cli.group import main
from zq.outbox import relay, source

if __name__ == "__main__":
    relay.MOST_AT_ONCE = 5
    source.MOST_ROWS = 20  # before a database is opened, and its module imported
    main()
