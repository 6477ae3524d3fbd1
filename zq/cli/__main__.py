"""`python -m zq.cli` is the command `zq`."""

from zq.cli.group import main

main(prog_name="zq")
