"""The verbs about statistics of queues."""

from zq.model.keys import KeyScope
from zq.operators.ops.wire import QueueStatsDocument, StatsDocument
from zq.verbs.verb import Verb

STATS = Verb("GET", "/stats", KeyScope.READ, StatsDocument)
STATS_OF_QUEUE = Verb("GET", "/queues/{queue}/stats", KeyScope.READ, QueueStatsDocument)
