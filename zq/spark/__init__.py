"""zq and Spark: a data source, a pipeline that fills a lake, and a report. Needs the extra `spark`.

- `source`: `format("zq")` reads, streams and writes. `register(session)` makes it known.
- `pipeline`: the history of a server or a fleet becomes tables in a lake.
- `report`: the lake becomes one HTML page.
"""

from zq.spark.source.datasource import register

__all__ = ["register"]
