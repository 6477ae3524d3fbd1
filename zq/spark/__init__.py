"""Spark's door to zq, and the lake of a fleet and what it tells. Needs the extra `spark`.

`register(session)` makes `format("zq")` known.
"""

from zq.spark.source import register

__all__ = ["register"]
