"""The endpoints for operators: health, version, metrics."""

from zq.operators.ops.http.metrics.api import MetricsApi
from zq.operators.ops.http.service import ServiceApi
from zq.operators.ops.http.status import StatusApi

APIS = (ServiceApi, StatusApi, MetricsApi)
