"""For tests of programs that use zq: the real server on a temporary database, and a clock.

`zq.testing.plugin` has the fixtures. pytest finds them by itself once zq is installed. Nothing else
here needs pytest, but for the suite of backends, `zq.testing.contract`.
"""

from zq.testing.server import TestServer, server
from zq.testing.work import run_until_idle

__all__ = ["TestServer", "run_until_idle", "server"]
