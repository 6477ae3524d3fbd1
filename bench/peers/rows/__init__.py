"""The rows, in the order in which they are run and shown."""

from bench.peers.rows import bulk, depth, flood, latency, process, reply, retries, scheduled, single
from bench.peers.rows.row import Figures, Metric, Row

__all__ = ["ROWS", "Figures", "Metric", "Row"]

_ALL = [bulk, single, process, latency, reply, scheduled, depth, retries, flood]
ROWS: dict[str, Row] = {row.name: row for module in _ALL for row in module.ROWS}
