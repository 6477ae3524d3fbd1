"""`python -m zq.cli` is the command `zq`."""

from zq.cli import main

main()
