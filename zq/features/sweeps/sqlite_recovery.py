"""The latest sweep that had changed something, as a start finds it."""

from zq.store.sqlite.recovery import Recovery

RECOVERY = Recovery(found=("last_sweep",))
