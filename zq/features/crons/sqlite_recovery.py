"""When the first entry was due, as a start finds it."""

from zq.store.sqlite.recovery import Recovery

RECOVERY = Recovery(found=("next_firing",))
