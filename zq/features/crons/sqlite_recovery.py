"""When the first entry was due, as a start finds it."""

from zq.features.crons.model import NEXT_FIRING
from zq.store.sqlite.recovery import Recovery

RECOVERY = Recovery(found=(NEXT_FIRING,))
