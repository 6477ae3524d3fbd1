"""Job history on Apache Spark: the lake of a fleet and what it tells. Needs the extra `spark`."""
