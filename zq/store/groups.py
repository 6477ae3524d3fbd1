"""FIFO groups: in a (queue, group) one job at a time is open to claims, its head.

The head is the job in flight if there is one, else the lowest unfinished id, whether it is ready or
waits for its time; so a job that is to be tried again keeps its group shut. All others have the
bit of their group in `held`. What ends, moves or brings a job of a group touches the group; before
the claims of the same transaction two statements put the bits of all touched groups right, whatever
they were. So a phase only has to touch, and a crash cannot come between.
"""

from zq.store.work import Work, as_json


def turn_heads(work: Work) -> None:
    """Open the heads of the groups that this transaction has touched, and shut the others."""
    if work.mixed_groups:
        work.run("shut_groups", groups=as_json(list(work.mixed_groups)))
    if work.groups:
        work.run("open_groups", groups=as_json(list(work.groups)))
        work.woken.update([queue for queue, _ in work.groups])
    work.mixed_groups.clear()
    work.groups.clear()
