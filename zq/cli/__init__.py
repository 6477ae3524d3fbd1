"""The command `zq`. Each command has its own file, and imports its requirements when it runs."""


def main() -> None:
    """Run the command with the arguments of this process."""
    from zq.cli.group import main as group  # it imports the commands, which import from here

    group()
