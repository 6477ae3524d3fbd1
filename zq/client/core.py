"""What an app's tasks and queues share."""

from dataclasses import dataclass, field

from zq.client.backend import Backend
from zq.client.events import Events
from zq.client.options import Options


@dataclass
class Core:
    """The server, the options of all jobs, and who listens."""

    backend: Backend
    defaults: Options
    events: Events = field(default_factory=Events)
