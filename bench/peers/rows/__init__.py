"""The rows, in the order in which they are run and shown."""

from bench.peers.rows import enqueued, processed, waited
from bench.peers.rows.flood import FLOOD
from bench.peers.rows.row import Figures, Metric, Row

__all__ = ["ROWS", "Figures", "Metric", "Row"]

_ALL = [*enqueued.ROWS, *processed.PROCESS, *waited.ROWS, processed.DEPTH, processed.RETRIES, FLOOD]
ROWS: dict[str, Row] = {row.name: row for row in _ALL}
