"""The verbs about statistics of queues."""

from zq.model.keys import KeyScope
from zq.verbs.verb import Verb
from zq.wire.stats import QueueStatsDocument, StatsDocument

STATS = Verb("GET", "/stats", KeyScope.READ, StatsDocument)
STATS_OF_QUEUE = Verb("GET", "/queues/{queue}/stats", KeyScope.READ, QueueStatsDocument)
