"""`zq top`: shows the jobs of a server on a terminal as they change."""

from zq.cli.rooms import Section
from zq.operators.admin.cli.command import top

COMMANDS = {Section.LOOK: (top,)}
