"""The access log: off by default, since it costs a quarter of the speed; sampled; or all."""

import itertools
import logging
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

ONE_IN = 100
"""Of what went well, a sampled log shows this part; of 5xx answers, all."""

ACCESS_LOG = logging.getLogger("zq.api.primary")


class AccessLogger(AbstractAccessLogger):
    """One line a request: method, path, status, milliseconds."""

    def log(self, request: web.BaseRequest, response: Any, time: float) -> None:
        """Called by aiohttp; `time` is in seconds."""
        fields = {
            "method": request.method,
            "path": request.path,
            "status": response.status,
            "latency_ms": round(time * 1000, 3),
        }
        ACCESS_LOG.info("request", extra={"fields": fields})


class SampledAccessLogger(AccessLogger):
    """One request in a hundred, and every one that failed here."""

    _count = itertools.count()

    def log(self, request: web.BaseRequest, response: Any, time: float) -> None:
        """Called by aiohttp; `time` is in seconds."""
        if response.status >= 500 or next(self._count) % ONE_IN == 0:
            super().log(request, response, time)
