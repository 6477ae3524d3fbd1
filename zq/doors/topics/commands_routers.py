"""The commands about routers."""

import msgspec

from zq.doors.topics.model_routers import RouterConfig
from zq.model.commands import Command
from zq.model.reach import EVERYWHERE, Reach


class RouterPut(msgspec.Struct, frozen=True):
    """True if a `PutRouter` has brought a new router."""

    created: bool


class PutRouter(Command[RouterPut], frozen=True):
    """Create a router and the topics at its ends, or change it. It copies from now on.

    The errors are `TopicNotFound` if its `dest` is not to be created, `RouterFanIn`, `RouterCycle`,
    `TooManyCopies`, `TooManyRouters`, `TooManyTopics`, and `QueueOutOfReach` if there is one of
    this name whose ends are out of reach.
    """

    name: str
    config: RouterConfig
    reach: Reach = EVERYWHERE


class DeleteRouter(Command[bool], frozen=True):
    """Delete a router, and keep its copies. Returns whether there was one."""

    name: str
    reach: Reach = EVERYWHERE
