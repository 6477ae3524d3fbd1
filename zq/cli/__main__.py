"""`python -m zq.cli` is the command `zq`."""

from zq.cli.main import main

main(prog_name="zq")
