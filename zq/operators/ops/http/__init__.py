"""The endpoints for operators: reset, status, metrics."""

from zq.operators.ops.http.metrics.api import MetricsApi
from zq.operators.ops.http.reset import ResetApi
from zq.operators.ops.http.status import StatusApi

APIS = (ResetApi, StatusApi, MetricsApi)
