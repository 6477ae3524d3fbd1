"""The command `zq`. Each command has its own file, and imports its requirements when it runs."""

import os
import signal


def main() -> None:
    """Run the command with the arguments of this process."""
    if os.getpid() == 1:
        # The kernel keeps from the first process of a container what it has no handler for. A start
        # would have to be over before `docker stop` ends it.
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))

    from zq.lightly import import_msgspec_lightly

    import_msgspec_lightly()
    from zq.cli.group import main as group  # it imports the commands, which import from here

    group(prog_name="zq")
